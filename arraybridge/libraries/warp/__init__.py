"""NVIDIA Warp."""
