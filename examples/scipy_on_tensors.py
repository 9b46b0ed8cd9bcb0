"""SciPy on PyTorch tensors: functions written for NumPy, and functions of the array API.

    python examples/scipy_on_tensors.py

Needs scipy and torch.
"""

from __future__ import annotations

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported: its array API functions
import torch
from scipy import ndimage, optimize, signal
from scipy.spatial.transform import Rotation

import arraybridge as ab

# Functions written for NumPy: each takes tensors now, and returns tensors.
label = ab.adapt("numpy")(ndimage.label)
center_of_mass = ab.adapt("numpy")(ndimage.center_of_mass)
find_peaks = ab.adapt("numpy")(signal.find_peaks)
assignment = ab.adapt("numpy")(optimize.linear_sum_assignment)


def main() -> None:
    """Segment a picture, match predictions to targets, and differentiate through SciPy."""
    torch.manual_seed(0)
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    spots = torch.tensor([[12.0, 15.0], [40.0, 20.0], [30.0, 50.0]])
    picture = sum(torch.exp(-((y - a) ** 2 + (x - b) ** 2) / 20) for a, b in spots)

    regions, count = label(picture > 0.5)
    print(f"regions:  {type(regions).__name__} of {regions.dtype}, {count} of them")
    centers = torch.tensor(center_of_mass(picture, regions, range(1, count + 1)))
    for row, column in centers.tolist():
        print(f"    at row {row:.1f}, column {column:.1f}")

    peaks, _ = find_peaks(picture.sum(1))
    print(f"peaks:    {peaks}, a {type(peaks).__name__}")

    # As in set prediction: which prediction belongs to which target?
    predictions = (spots[[2, 0, 1]] + torch.randn(3, 2)).requires_grad_()
    cost = torch.cdist(predictions, spots)
    try:
        assignment(cost)
    except ab.ConversionError as error:
        print(f"matching: refused, {str(error).splitlines()[0]}")
    rows, columns = assignment(cost.detach())
    loss = cost[rows, columns].mean()
    loss.backward()
    print(f"matching: {list(zip(rows.tolist(), columns.tolist(), strict=True))}, loss {loss:.3f}")

    # SciPy's array API functions compute with the tensor itself, so gradients pass through.
    turn = torch.tensor([0.0, 0.0, 0.3], requires_grad=True)  # about the third axis, in radians
    rotation = Rotation.from_rotvec(ab.from_dlpack(turn))
    corners = rotation.apply(ab.from_dlpack(torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])))
    print(f"rotation: {type(corners).__name__} over {corners.library}")
    corners.native[:, 0].sum().backward()
    print(f"    its gradient: {turn.grad}")


if __name__ == "__main__":
    main()
