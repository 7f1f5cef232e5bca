"""Protos that we read and write are, to XLA, the same modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tool
import xla

ELIDED = "constant({...})"
FILES = [
    path
    for path in tool.hlo_files("models", "real", "text/ok")
    + sorted((tool.FIXTURES / "ops").glob("*/*.hlo"))
    if ELIDED not in path.read_text()
]


def varint(value: int) -> bytes:
    """A number as protobuf has it, seven bits to a byte."""
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(digits) + bytes([value])


def field(number: int, data: bytes) -> bytes:
    """A protobuf field that holds bytes."""
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def convert(data: bytes, folder: Path) -> bytes:
    """Proto to proto, through the ir."""
    source, out = folder / "in.pb", folder / "out.pb"
    source.write_bytes(data)
    tool.tilewright("convert", source, "-o", out)
    return out.read_bytes()


def says_order(module: xla.HloModule) -> bool:
    """Whether a comparison has a total order: we say so in two fields, of which older
    readers know the first, newer ones both, and XLA writes one."""
    return re.search(r" compare\(.*(order=TOTAL|type=TOTALORDER)", xla.print_full(module)) is not None


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES, ids=tool.fixture_id)
def test_proto_comes_through(path: Path, tmp_path: Path) -> None:
    """XLA's proto, decoded and encoded: the same module, and where no schedule
    orders the instructions, the same bytes."""
    original = xla.parse(path.read_text()).as_serialized_hlo_module_proto()
    ours = convert(original, tmp_path)
    expected, actual = xla.from_proto(original), xla.from_proto(ours)
    assert xla.print_full(actual) == xla.print_full(expected)
    assert xla.proto_without_id(actual) == xla.proto_without_id(expected)
    if "is_scheduled=true" not in path.read_text() and not says_order(expected):
        assert ours == original


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES, ids=tool.fixture_id)
def test_text_to_proto_is_xlas(path: Path, tmp_path: Path) -> None:
    """Our proto of a text is to XLA what its own parser makes of the text."""
    out = tmp_path / "out.pb"
    tool.tilewright("convert", path, "-o", out)
    expected = xla.from_proto(xla.parse(path.read_text()).as_serialized_hlo_module_proto())
    actual = xla.from_proto(out.read_bytes())
    assert xla.resolve_frames(xla.print_full(actual)) == xla.resolve_frames(
        xla.print_full(expected)
    )


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES[::8], ids=tool.fixture_id)
def test_proto_to_text_is_xlas(path: Path, tmp_path: Path) -> None:
    """Our text of XLA's proto is a text of the same module."""
    original = xla.parse(path.read_text()).as_serialized_hlo_module_proto()
    source, out = tmp_path / "in.pb", tmp_path / "out.hlo"
    source.write_bytes(original)
    tool.tilewright("convert", source, "-o", out)
    # XLA's parser orders computations its own way: both go through it.
    expected = xla.parse(xla.print_full(xla.from_proto(original)))
    actual = xla.parse(out.read_text())
    assert xla.resolve_frames(xla.print_full(actual)) == xla.resolve_frames(
        xla.print_full(expected)
    )


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("path", FILES[::40], ids=tool.fixture_id)
def test_dumps_and_snapshots(path: Path, tmp_path: Path) -> None:
    """The module in an HloProto or HloSnapshot is found."""
    module = xla.parse(path.read_text()).as_serialized_hlo_module_proto()
    dump = field(1, module) + field(3, b"")
    snapshot = field(1, dump) + field(4, b"cpu")
    expected = convert(module, tmp_path)
    assert convert(dump, tmp_path) == expected
    assert convert(snapshot, tmp_path) == expected


@pytest.mark.usefixtures("binary")
def test_rewritten_proto_is_the_rewritten_text(tmp_path: Path) -> None:
    """`opt` gives the same module whether it reads text or proto."""
    path = tool.FIXTURES / "models/group_norm_nhwc.hlo"
    source = tmp_path / "in.pb"
    source.write_bytes(xla.parse(path.read_text()).as_serialized_hlo_module_proto())
    tool.tilewright("opt", source, "-o", tmp_path / "from_proto.pb")
    tool.tilewright("opt", path, "-o", tmp_path / "from_text.pb")
    actual, expected = (
        xla.from_proto((tmp_path / name).read_bytes()) for name in ("from_proto.pb", "from_text.pb")
    )
    assert xla.resolve_frames(xla.print_full(actual)) == xla.resolve_frames(
        xla.print_full(expected)
    )
    assert xla.print_full(actual) != xla.print_full(xla.parse(path.read_text()))


@pytest.mark.usefixtures("binary")
def test_dumps_of_jax_come_through(tmp_path: Path) -> None:
    """Programs before and after XLA's optimisation, sharded ones too."""
    script = Path(__file__).with_name("dumps.py")
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    dumps = sorted(tmp_path.glob("*.pb"))
    assert len(dumps) >= 38
    for path in dumps:
        tool.tilewright("verify", path)
        original = path.read_bytes()
        expected, actual = xla.from_proto(original), xla.from_proto(convert(original, tmp_path))
        assert xla.print_full(actual) == xla.print_full(expected), path.name
        assert xla.proto_without_id(actual) == xla.proto_without_id(expected), path.name
