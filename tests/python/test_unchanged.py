"""Modules without the patterns come back byte for byte."""

from __future__ import annotations

from pathlib import Path

import tilewright as tw

import tool
from entries import check_files

PLAIN = ("batch_norm", "mlp")
# Their sums have cores in common.
PULLED_APART = ("batch_norm_grad", "batch_norm_vjp")
NAMES = {
    path: path.stem.removeprefix("compiled_")
    for path in tool.hlo_files("models", "real", "text/ok")
}
FILES = [
    path
    for path, name in NAMES.items()
    if name.startswith(PLAIN) and not name.startswith(PULLED_APART)
]


def test_nothing_is_changed() -> None:
    """What is optimised is printed as what is read."""
    assert len(FILES) == 8

    def check(path: Path) -> None:
        module = tw.Module.from_file(path)
        done = tw.optimize(module)
        assert done.module.to_text() == module.to_text()
        assert done.report.unchanged

    check_files(FILES, check)
