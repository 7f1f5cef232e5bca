"""Writes fixtures again, all in one process, since JAX takes long to start:

    python regenerate.py FOLDER NAME...

The names are those of fixtures, without endings, as `models/mlp` or `ops/add/floats`; those of
`ops` need a process of their own, which has 64 bits.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from jax._src import source_info_util

import tool

sys.path.insert(0, str(tool.FIXTURES))

# The stack frames in metadata are those of `programs.py` alone.
source_info_util.register_exclusion(__file__)


def programs(folder: Path, names: set[str]) -> None:
    """Writes what `generate.py` does."""
    import generate

    for path, write in generate.jobs(folder):
        if str(path.relative_to(folder).with_suffix("")) in names:
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path.parent)


def ops(folder: Path, names: set[str]) -> None:
    """Writes what `generate_ops.py` does."""
    import generate_ops

    write = generate_ops.write

    def write_some(out: Path, case: Any) -> None:
        if f"ops/{case.name}" in names:
            write(out, case)

    generate_ops.write = write_some
    sys.argv[1:] = ["--out", str(folder / "ops")]
    generate_ops.main()


if __name__ == "__main__":
    chosen = set(sys.argv[2:])
    (ops if all(name.startswith("ops/") for name in chosen) else programs)(
        Path(sys.argv[1]), chosen
    )
