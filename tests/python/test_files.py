"""Every file that this jaxlib dumps of a module is read to the module of its text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tool

PROGRAMS = ("module_0000.jit_group_scale", "module_0002.jit_table")


@pytest.fixture(name="dumps", scope="module")
def fixture_dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What fixtures/generate_files.py makes with the jaxlib that is installed."""
    out = tmp_path_factory.mktemp("files")
    script = tool.FIXTURES / "generate_files.py"
    command = [sys.executable, str(script), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return out / "files"


def converted(path: Path) -> str:
    """A module as text, without what a proto does not have."""
    text = tool.tilewright("convert", path)
    return re.sub(r", allow_spmd\w+=\{[^}]*\}", "", text)


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_form_is_the_same_module(program: str, dumps: Path) -> None:
    """Proto, gzip and both forms of a snapshot have the same module."""
    before, snapshot = f"{program}.before_optimizations", f"{program}.execution_0000"
    expected = converted(dumps / "dump" / f"{before}.hlo.pb")
    if program.endswith("group_scale"):
        # XLA leaves the constants of the other out of its text.
        assert converted(dumps / "dump" / f"{before}.txt") == expected
    assert converted(dumps / "gzip" / f"{before}.hlo.pb.gz") == expected
    for ending in ("pb", "txt"):
        name = f"{snapshot}.hlo_unoptimized_snapshot.{ending}"
        assert converted(dumps / "snapshots" / name) == expected


@pytest.mark.usefixtures("binary")
def test_arguments_are_the_same_in_both_forms(dumps: Path) -> None:
    """A binary snapshot stores elements of every width as its text lists them."""
    stem = "module_0004.jit_kinds.execution_0000.hlo_unoptimized_snapshot"
    binary, text = (dumps / "snapshots" / f"{stem}.{ending}" for ending in ("pb", "txt"))
    assert tool.tilewright("run", binary) == tool.tilewright("run", text)


@pytest.mark.usefixtures("binary")
def test_profiles_have_a_module(dumps: Path) -> None:
    """The profiler still writes modules where they are looked for."""
    done = tool.tilewright("verify", dumps / "profile" / "group_scale.xplane.pb")
    assert ": ok, " in done
