#!/usr/bin/env python3
"""Diagonals as views, beside the route by a shuffle and a reshape, and NumPy.

    cargo build --release -p tilewright-benches --bin time_diagonal
    python benches/diagonal_peer.py

All run one after the other on the same machine, NumPy's arrays on pages of the
usual size, as the others' are: it asks for large ones.  Ratios are how many times
longer the other two take than a view.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from pathlib import Path

os.environ["NUMPY_MADVISE_HUGEPAGE"] = "0"

import numpy as np

TOOL = Path(__file__).resolve().parents[1] / "target/release/time_diagonal"
CASES = [
    # dim1, dim2, offset, dims
    (0, 1, 0, (4096, 4096)),
    (0, 1, -7, (2048, 4096)),
    (1, 2, 1, (256, 128, 128)),
    (0, 2, 0, (128, 256, 128)),
    (1, 3, -2, (16, 64, 16, 64)),
    (0, 4, 3, (32, 8, 8, 8, 32)),
]


def time_numpy(dim1: int, dim2: int, offset: int, dims: tuple[int, ...]) -> float:
    """Median seconds of a copied diagonal."""
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    times = []
    for _ in range(15):
        start = time.perf_counter()
        np.ascontiguousarray(x.diagonal(offset, dim1, dim2))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Prints the table."""
    print("| dims | diagonal | view, us | shuffle + reshape | NumPy |")
    print("|---|---|---:|---:|---:|")
    for dim1, dim2, offset, dims in CASES:
        words = [str(TOOL), *map(str, (dim1, dim2, offset, *dims))]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        ours = {}
        for line in done.stdout.splitlines():
            entry = json.loads(line)
            ours[entry["what"]] = entry["seconds"]
        view = ours["view"]
        numpy = time_numpy(dim1, dim2, offset, dims)
        print(
            f"| {list(dims)} | ({dim1}, {dim2}) {offset:+d} | {view * 1e6:.1f}"
            f" | {ours['shuffle'] / view:.0f}x | {numpy / view:.1f}x |"
        )


if __name__ == "__main__":
    main()
