"""Protos that we read and write are, to XLA, the same modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import tilewright as tw

import tool
import xla
from entries import check_each, check_files

ELIDED = "constant({...})"
FOLDERS = ("models", "real", "text/ok", "ops")


def files(folder: str) -> list[Path]:
    """The modules of a folder whose constants are all in their texts."""
    found = sorted((tool.FIXTURES / folder).rglob("*.hlo"))
    return [path for path in found if ELIDED not in path.read_text()]


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


def xlas_proto(path: Path) -> bytes:
    """The proto that XLA makes of a text."""
    return xla.parse(path.read_text()).as_serialized_hlo_module_proto()


def convert(proto: bytes) -> bytes:
    """Proto to proto, through the ir."""
    return tw.Module.from_proto(proto).to_proto()


def resolved(module: xla.HloModule) -> str:
    """XLA's text without the numbers of stack frames."""
    return xla.resolve_frames(xla.print_full(module))


def says_order(module: xla.HloModule) -> bool:
    """Whether a comparison has a total order: we say so in two fields, of which older
    readers know the first, newer ones both, and XLA writes one."""
    return re.search(r" compare\(.*(order=TOTAL|type=TOTALORDER)", xla.print_full(module)) is not None


@pytest.mark.parametrize("folder", FOLDERS)
def test_protos_come_through(folder: str) -> None:
    """XLA's proto, decoded and encoded: the same module, and where no schedule
    orders the instructions, the same bytes."""
    same_bytes = 0

    def check(path: Path) -> None:
        nonlocal same_bytes
        original = xlas_proto(path)
        ours = convert(original)
        expected, actual = xla.from_proto(original), xla.from_proto(ours)
        assert xla.print_full(actual) == xla.print_full(expected)
        assert xla.proto_without_id(actual) == xla.proto_without_id(expected)
        if "is_scheduled=true" not in path.read_text() and not says_order(expected):
            assert ours == original
            same_bytes += 1

    paths = files(folder)
    check_files(paths, check)
    assert same_bytes > len(paths) // 2


@pytest.mark.parametrize("folder", FOLDERS)
def test_text_to_proto_is_xlas(folder: str) -> None:
    """Our proto of a text is to XLA what its own parser makes of the text."""

    def check(path: Path) -> None:
        actual = xla.from_proto(tw.Module.from_file(path).to_proto())
        assert resolved(actual) == resolved(xla.from_proto(xlas_proto(path)))

    check_files(files(folder), check)


@pytest.mark.parametrize("folder", FOLDERS)
def test_proto_to_text_is_xlas(folder: str) -> None:
    """Our text of XLA's proto is a text of the same module."""

    def check(path: Path) -> None:
        original = xlas_proto(path)
        # XLA's parser orders computations its own way: both go through it. It takes the `-0`
        # that XLA prints for 0.
        printed = xla.print_full(xla.from_proto(original))
        expected = xla.parse(re.sub(r"(?<=[{( ])-0(?=[ ,)}])", "-0.0", printed))
        actual = xla.parse(tw.Module.from_proto(original).to_text())
        assert resolved(actual) == resolved(expected)

    check_files(files(folder), check)


@pytest.mark.parametrize("folder", FOLDERS)
def test_dumps_and_snapshots(folder: str) -> None:
    """The module in an HloProto or HloSnapshot is found."""

    def check(path: Path) -> None:
        module = xlas_proto(path)
        dump = field(1, module) + field(3, b"")
        snapshot = field(1, dump) + field(4, b"cpu")
        expected = convert(module)
        assert convert(dump) == expected
        assert convert(snapshot) == expected

    check_files(files(folder), check)


def test_rewritten_proto_is_the_rewritten_text() -> None:
    """`optimize` gives the same module whether it reads text or proto."""
    path = tool.FIXTURES / "models/group_norm_nhwc.hlo"
    actual, expected = (
        xla.from_proto(tw.optimize(module).module.to_proto())
        for module in (tw.Module.from_proto(xlas_proto(path)), tw.Module.from_file(path))
    )
    assert resolved(actual) == resolved(expected)
    assert xla.print_full(actual) != xla.print_full(xla.parse(path.read_text()))


def test_dumps_of_jax_come_through(tmp_path: Path) -> None:
    """Programs before and after XLA's optimisation, sharded ones too."""
    script = Path(__file__).with_name("dumps.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    dumps = sorted(tmp_path.glob("*.pb"))
    assert len(dumps) >= 38

    def check(path: Path) -> None:
        original = path.read_bytes()
        expected, actual = xla.from_proto(original), xla.from_proto(convert(original))
        assert xla.print_full(actual) == xla.print_full(expected)
        assert xla.proto_without_id(actual) == xla.proto_without_id(expected)

    check_each(dumps, check, lambda path: path.name)
