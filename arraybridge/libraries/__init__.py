"""What arraybridge knows of each array library: one file each, loaded when its array arrives."""
