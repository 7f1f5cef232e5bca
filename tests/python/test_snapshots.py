"""Snapshots run with the arguments that they recorded, and are held against the results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tool
import xla
from test_proto import field, varint

NAME = "models/group_norm_nhwc"
F32 = 11


def number(place: int, value: int) -> bytes:
    """A protobuf field that holds an integer."""
    return bytes([place << 3]) + varint(value)


def literal(array: np.ndarray) -> bytes:
    """A `LiteralProto` of floats."""
    dims = b"".join(number(3, size) for size in array.shape)
    order = field(1, bytes(reversed(range(array.ndim))))
    shape = number(2, F32) + dims + field(5, order)
    return field(1, shape) + field(8, array.astype("<f4").tobytes())


@pytest.fixture(name="recorded")
def fixture_recorded() -> tuple[list[np.ndarray], np.ndarray]:
    """What XLA computed of a program, and of what."""
    with np.load(tool.FIXTURES / f"{NAME}.npz") as arrays:
        inputs = sum(name.startswith("in") for name in arrays.files)
        return [arrays[f"in{i}"] for i in range(inputs)], arrays["out0"]


def snapshot(folder: Path, arguments: list[np.ndarray], result: np.ndarray) -> Path:
    """An `HloSnapshot` of the program."""
    text = (tool.FIXTURES / f"{NAME}.hlo").read_text()
    dump = field(1, xla.parse(text).as_serialized_hlo_module_proto())
    values = b"".join(field(2, literal(argument)) for argument in arguments)
    path = folder / "snapshot.pb"
    path.write_bytes(field(1, dump) + values + field(3, literal(result)) + field(4, b"Host"))
    return path


def checked(path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """What `check` says of a module and its optimised form."""
    command = [str(tool.binary()), "check", str(path), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("binary")
def test_a_snapshot_runs_with_its_arguments(
    recorded: tuple[list[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    """What comes out is what was recorded; another seed is asked for by name."""
    path, out = snapshot(tmp_path, *recorded), tmp_path / "out.npz"
    tool.tilewright("run", path, "-o", out)
    with np.load(out) as arrays:
        np.testing.assert_allclose(arrays["out0"], recorded[1], rtol=1e-4, atol=1e-5)
    tool.tilewright("run", path, "--seed", "0", "-o", out)
    with np.load(out) as arrays:
        assert not np.allclose(arrays["out0"], recorded[1], rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("binary")
def test_a_recorded_result_is_held_against_the_module(
    recorded: tuple[list[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    """The result as XLA computed it agrees, another one does not."""
    arguments, result = recorded
    same = checked(snapshot(tmp_path, arguments, result))
    assert same.returncode == 0, same.stderr
    assert "as recorded: 1 output" in same.stdout
    wrong = result.copy()
    wrong.flat[5] += 1.0
    path = snapshot(tmp_path, arguments, wrong)
    other = checked(path)
    assert other.returncode == 1
    assert "does not give what its snapshot recorded" in other.stderr
    report = json.loads(checked(path, "--json").stdout)
    assert not report["equal"] and report["recorded"][0]["at"] is not None
    # What was recorded does not matter where other inputs are asked for.
    assert checked(path, "--seed", "1").returncode == 0


@pytest.mark.usefixtures("binary")
def test_opt_checks_with_the_recorded_arguments(
    recorded: tuple[list[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    """They are taken in place of random ones, so that one that is missing is missed."""
    arguments, result = recorded
    out = tmp_path / "out.hlo"
    tool.tilewright("opt", snapshot(tmp_path, arguments, result), "--check", "-o", out)
    assert out.read_text().startswith("HloModule")
    path = snapshot(tmp_path, arguments[:-1], result)
    command = [str(tool.binary()), "opt", str(path), "-o", str(out)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    missing = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    assert missing.returncode == 1 and "2 inputs were given" in missing.stderr
