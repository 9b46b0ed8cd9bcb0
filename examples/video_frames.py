"""View video frames in a driver's buffer as tensors, without a copy.

    python examples/video_frames.py

A camera or a decoder writes each frame to the same memory. Needs torch.
"""

from __future__ import annotations

import io
import wave

import numpy as np
import torch

import arraybridge as ab

HEIGHT, WIDTH, PITCH = 480, 640, 704  # bytes from one row to the next


def capture(buffer: bytearray, number: int) -> None:
    """Write a frame as a driver does, in NV12: brightness, then two colors at half the size."""
    rows = np.frombuffer(buffer, np.uint8).reshape(-1, PITCH)
    rows[:HEIGHT, :WIDTH] = np.arange(WIDTH) // 4 + 10 * number
    rows[HEIGHT:, :WIDTH:2] = 90
    rows[HEIGHT:, 1:WIDTH:2] = 160


def rgb(y: torch.Tensor, uv: torch.Tensor) -> torch.Tensor:
    """Return a frame as floats in 0 to 1, channels first."""
    u, v = (uv.float() - 128).permute(2, 0, 1).repeat_interleave(2, 1).repeat_interleave(2, 2)
    light = 1.164 * (y.float() - 16)
    color = torch.stack([light + 1.596 * v, light - 0.392 * u - 0.813 * v, light + 2.017 * u])
    return (color / 255).clamp(0, 1)


def main() -> None:
    """View the planes once, read frames as they come, and split the channels of a sound."""
    buffer = bytearray(PITCH * HEIGHT * 3 // 2)
    memory = ab.convert(memoryview(buffer), "torch")  # a view of the whole buffer
    rows = memory.reshape(-1, PITCH)
    y = rows[:HEIGHT, :WIDTH]
    uv = rows[HEIGHT:, :WIDTH].reshape(HEIGHT // 2, WIDTH // 2, 2)
    print(f"y: {tuple(y.shape)}, strides {y.stride()}; uv: {tuple(uv.shape)}, {uv.stride()}")

    for number in range(3):
        capture(buffer, number)  # the same memory: the tensors show the new frame
        frame = rgb(y, uv)
        red, green, blue = frame.mean((1, 2)).tolist()
        print(f"frame {number}: red {red:.3f}, green {green:.3f}, blue {blue:.3f}")
    try:
        buffer.extend(b"more")
    except BufferError as error:
        print(f"the buffer stays in place while it is viewed: {error}")

    # Sound: bytes are read-only, and the channels alternate.
    tone = (8000 * np.sin(np.arange(4410) / 7)).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((2, 2, 44100, 0, "NONE", ""))
        sound.writeframes(np.stack([tone, -tone], axis=1).tobytes())
    file.seek(0)
    with wave.open(file) as sound:
        samples = memoryview(sound.readframes(4410)).cast("h", (4410, 2))
    left = ab.convert(samples, "numpy")[:, 0]
    writable = left.flags.writeable
    print(f"\nleft: {left.dtype}, a stride of {left.strides[0]} bytes, writable: {writable}")
    print("to PyTorch:", ab.explain(left, "torch", dtype="float32"))


if __name__ == "__main__":
    main()
