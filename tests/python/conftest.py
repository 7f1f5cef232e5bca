"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

import tool


@pytest.fixture(scope="session")
def binary() -> Path:
    """The binary under test; its absence is a failure, not a skip."""
    path = tool.binary()
    if not path.is_file():
        pytest.fail(
            f"no binary at {path}: run `cargo build --release` or set TILEWRIGHT_BIN",
            pytrace=False,
        )
    return path
