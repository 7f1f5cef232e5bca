"""What `tilewright convert` prints is, to XLA's parser, the same module."""

from __future__ import annotations

from pathlib import Path

import pytest

import tool
import xla

# XLA's parser makes up the values of an elided constant, new ones each time.
ELIDED = "constant({...})"
FILES = tool.hlo_files("models", "real", "foreign", "text/ok")
OPS = sorted((tool.FIXTURES / "ops").glob("*/*.hlo"))


@pytest.mark.parametrize("path", FILES, ids=tool.fixture_id)
def test_original_is_a_fixed_point_of_xla(path: Path) -> None:
    """XLA reads its own text of the fixture back as the same module."""
    once = xla.print_full(xla.parse(path.read_text()))
    twice = xla.print_full(xla.parse(once))
    assert xla.resolve_frames(twice) == xla.resolve_frames(once)


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES, ids=tool.fixture_id)
def test_convert_keeps_the_module(path: Path, tmp_path: Path) -> None:
    """Text to text loses nothing that XLA can see."""
    out = tmp_path / "out.hlo"
    tool.tilewright("convert", path, "-o", out)
    before, after = path.read_text(), out.read_text()
    expected, actual = xla.parse(before), xla.parse(after)
    assert xla.print_elided(actual) == xla.print_elided(expected)
    assert after.count(ELIDED) == before.count(ELIDED)
    if ELIDED not in before:
        assert xla.print_full(actual) == xla.print_full(expected)
        assert xla.proto_without_id(actual) == xla.proto_without_id(expected)


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES, ids=tool.fixture_id)
def test_convert_is_a_fixed_point(path: Path, tmp_path: Path) -> None:
    """Converting what convert printed changes no byte."""
    once, twice = tmp_path / "once.hlo", tmp_path / "twice.hlo"
    tool.tilewright("convert", path, "-o", once)
    tool.tilewright("convert", once, "-o", twice)
    assert twice.read_bytes() == once.read_bytes()


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES[::4] + OPS, ids=tool.fixture_id)
def test_what_xla_prints_is_read(path: Path, tmp_path: Path) -> None:
    """The text that the installed XLA prints, which older fixtures do not show, comes
    through as the same module."""
    printed, out = tmp_path / "printed.hlo", tmp_path / "out.hlo"
    expected = xla.print_full(xla.parse(path.read_text()))
    printed.write_text(expected)
    tool.tilewright("convert", printed, "-o", out)
    again = xla.print_full(xla.parse(out.read_text()))
    assert xla.resolve_frames(again) == xla.resolve_frames(expected)
