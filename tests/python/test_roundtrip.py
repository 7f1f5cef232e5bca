"""The text that Tilewright prints is, to XLA's parser, the same module."""

from __future__ import annotations

from pathlib import Path

import pytest
import tilewright as tw

import tool
import xla
from entries import check_files

# XLA's parser makes up the values of an elided constant, new ones each time.
ELIDED = "constant({...})"
FOLDERS = ("models", "real", "foreign", "text/ok")


def convert(text: str) -> str:
    """Text to text, through the ir."""
    return tw.Module.from_text(text).to_text()


@pytest.mark.parametrize("folder", FOLDERS)
def test_originals_are_fixed_points_of_xla(folder: str) -> None:
    """XLA reads its own text of a fixture back as the same module."""

    def check(path: Path) -> None:
        once = xla.print_full(xla.parse(path.read_text()))
        twice = xla.print_full(xla.parse(once))
        assert xla.resolve_frames(twice) == xla.resolve_frames(once)

    check_files(tool.hlo_files(folder), check)


@pytest.mark.parametrize("folder", FOLDERS)
def test_text_to_text_keeps_the_module(folder: str) -> None:
    """Text to text loses nothing that XLA can see."""

    def check(path: Path) -> None:
        before = path.read_text()
        after = convert(before)
        expected, actual = xla.parse(before), xla.parse(after)
        assert xla.print_elided(actual) == xla.print_elided(expected)
        assert after.count(ELIDED) == before.count(ELIDED)
        if ELIDED not in before:
            assert xla.print_full(actual) == xla.print_full(expected)
            assert xla.proto_without_id(actual) == xla.proto_without_id(expected)

    check_files(tool.hlo_files(folder), check)


@pytest.mark.parametrize("folder", FOLDERS)
def test_text_to_text_is_a_fixed_point(folder: str) -> None:
    """To read and print again what was printed changes no byte."""

    def check(path: Path) -> None:
        once = convert(path.read_text())
        assert convert(once) == once

    check_files(tool.hlo_files(folder), check)


@pytest.mark.parametrize("folder", [*FOLDERS, "ops"])
def test_what_xla_prints_is_read(folder: str) -> None:
    """The text that the installed XLA prints, which older fixtures do not show, comes
    through as the same module."""

    def check(path: Path) -> None:
        expected = xla.print_full(xla.parse(path.read_text()))
        again = xla.print_full(xla.parse(convert(expected)))
        assert xla.resolve_frames(again) == xla.resolve_frames(expected)

    paths = sorted((tool.FIXTURES / folder).rglob("*.hlo"))
    check_files(paths, check)
