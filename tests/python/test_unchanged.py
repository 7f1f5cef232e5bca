"""Modules without the patterns come back byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

import tool

PLAIN = ("batch_norm", "mlp")
FILES = [
    path
    for path in tool.hlo_files("models", "real", "text/ok")
    if path.stem.removeprefix("compiled_").startswith(PLAIN)
]


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES, ids=tool.fixture_id)
def test_opt_changes_nothing(path: Path, tmp_path: Path) -> None:
    """`opt` prints what `convert` prints."""
    converted, rewritten = tmp_path / "convert.hlo", tmp_path / "opt.hlo"
    tool.tilewright("convert", path, "-o", converted)
    tool.tilewright("opt", path, "-o", rewritten)
    assert rewritten.read_bytes() == converted.read_bytes()
