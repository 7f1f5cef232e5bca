#!/usr/bin/env python3
"""Which share of HLO dumps is read, verified and printed back as XLA has them.

    python benches/coverage.py FILE_OR_FOLDER... [--bin PATH]

Takes `.hlo` and `.txt` files of HLO text, and all that lie in folders.  For
each, XLA's parser reads the original and what `tilewright convert` prints,
as text and as a proto; the share of each step and the files that fall short
are listed.  A file that XLA itself does not read is not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import tool
import xla

STEPS = ("read and verified", "text equal", "proto equal")


def files(paths: list[Path]) -> Iterator[Path]:
    """The files named, and those in the folders named."""
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.hlo")) + sorted(path.rglob("*.txt"))
        else:
            yield path


def first_failure(path: Path, folder: Path) -> tuple[int, str]:
    """How many steps a file takes, and why not the next."""
    expected = xla.parse(path.read_text())
    text, proto = folder / "out.hlo", folder / "out.pb"
    try:
        tool.tilewright("convert", path, "-o", text)
        tool.tilewright("convert", path, "-o", proto)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return 0, str(error).split("\n", 2)[-1][:300]
    actual = xla.parse(text.read_text())
    if xla.proto_without_id(actual) != xla.proto_without_id(expected):
        return 1, "XLA reads another module from our text"
    # What only text can say is lost to both.
    expected = xla.from_proto(expected.as_serialized_hlo_module_proto())
    actual = xla.from_proto(proto.read_bytes())
    if xla.print_full(actual) != xla.print_full(expected):
        return 2, "XLA reads another module from our proto"
    return len(STEPS), ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    arguments = parser.parse_args()
    if arguments.bin:
        os.environ["TILEWRIGHT_BIN"] = str(arguments.bin)
    passed: Counter[str] = Counter()
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files(arguments.paths):
            try:
                xla.parse(path.read_text())
            except Exception as error:  # noqa: BLE001 - whatever XLA throws
                print(f"{path}: not HLO to XLA: {str(error)[:100]!r}")
                continue
            total += 1
            steps, why = first_failure(path, Path(folder))
            passed.update(STEPS[:steps])
            if why:
                print(f"{path}: {why}")
    for step in STEPS:
        print(f"{step}: {passed[step]} of {total}")


if __name__ == "__main__":
    main()
