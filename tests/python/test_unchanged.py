"""Modules without the patterns come back byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

import tool

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


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES, ids=tool.fixture_id)
def test_opt_changes_nothing(path: Path, tmp_path: Path) -> None:
    """`opt` prints what `convert` prints."""
    converted, rewritten = tmp_path / "convert.hlo", tmp_path / "opt.hlo"
    tool.tilewright("convert", path, "-o", converted)
    tool.tilewright("opt", path, "-o", rewritten)
    assert rewritten.read_bytes() == converted.read_bytes()
