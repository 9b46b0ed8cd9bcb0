"""A PyTorch DataLoader over Arrays: worker processes, and flips without extra copies.

    python examples/data_loader.py

It prints each batch. Needs torch.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import arraybridge as ab


class Flips(Dataset[tuple[ab.Array, int]]):  # type: ignore[misc]
    """Images, every second one mirrored: a view with a negative stride."""

    def __init__(self, images: np.ndarray) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[ab.Array, int]:
        image = self.images[index]
        if index % 2:
            image = image[:, ::-1]
        return ab.from_dlpack(image.transpose(2, 0, 1)), index  # channels first: a view, too


def collate(batch: list[tuple[ab.Array, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Make one tensor of the images, in any layout, and one of the indices."""
    images, indices = zip(*batch, strict=True)
    return torch.stack([ab.convert(x, "torch") for x in images]), torch.tensor(indices)


def main() -> None:
    """Load batches of flipped images in two worker processes."""
    images = np.random.default_rng(0).integers(0, 256, (32, 64, 64, 3), np.uint8)
    try:
        torch.utils.data.default_collate([images[0][:, ::-1]])
    except ValueError as error:
        print(f"PyTorch on a flipped NumPy image: {str(error).partition(' (')[0]}\n")

    loader = DataLoader(Flips(images), batch_size=8, num_workers=2, collate_fn=collate)
    for batch, indices in loader:
        first, last = int(indices[0]), int(indices[-1])
        print(f"images {first} to {last}: {tuple(batch.shape)}, {batch.dtype}")
        mirrored = images[last, :, ::-1].transpose(2, 0, 1)
        print(f"    the last one is mirrored: {np.array_equal(batch[-1].numpy(), mirrored)}")


if __name__ == "__main__":
    main()
