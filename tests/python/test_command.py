"""The command does what the package does, verb by verb: other tests use the package."""

from __future__ import annotations

import subprocess
from pathlib import Path

import jax
import numpy as np
import pytest
import tilewright as tw

import tool
import xla

MODEL = tool.FIXTURES / "models/group_norm_nhwc_grad.hlo"
NARROW = tool.FIXTURES / "models/group_norm_bf16.hlo"

pytestmark = pytest.mark.usefixtures("binary")


def said(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """What the command says, also if it fails."""
    command = [str(tool.binary()), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def inputs_of(path: Path) -> list[np.ndarray]:
    """The stored inputs of a model, in the types of its parameters."""
    shapes = xla.program_shape(xla.parse(path.read_text())).parameter_shapes()
    arrays = xla.read_npz(path.with_suffix(".npz"), "in")
    return [xla.typed(a, shape.numpy_dtype()) for a, shape in zip(arrays, shapes, strict=True)]


def same_outputs(stored: Path, ran: tw.Ran) -> None:
    """Fails unless a file of outputs has what the package gave."""
    ours = jax.tree.leaves(ran.output)
    written = xla.read_npz(stored, "out")
    assert len(written) == len(ours) > 0
    for one, other in zip(written, ours, strict=True):
        np.testing.assert_array_equal(xla.typed(one, other.dtype), other)


@pytest.mark.parametrize("source", ["in.hlo", "in.pb"])
def test_convert(source: str, tmp_path: Path) -> None:
    """Text and proto, to text and proto."""
    path = tmp_path / source
    tw.Module.from_file(MODEL).save(path)
    module = tw.Module.from_file(path)
    for name in ("out.hlo", "out.pb"):
        tool.tilewright("convert", path, "-o", tmp_path / name)
    assert (tmp_path / "out.hlo").read_text() == module.to_text()
    assert (tmp_path / "out.pb").read_bytes() == module.to_proto()
    assert tool.tilewright("convert", path) == module.to_text()


def test_opt(tmp_path: Path) -> None:
    """With other targets and numerics, some of which give another module."""
    module = tw.Module.from_file(MODEL)
    options = {
        (): {},
        ("--target", "cpu"): {"target": "cpu"},
        ("--exact",): {"exact": True},
        ("--fast-math",): {"fast_math": True},
    }
    found = set()
    for flags, named in options.items():
        out = tmp_path / "out.hlo"
        tool.tilewright("opt", MODEL, *flags, "-o", out)
        done = tw.optimize(module, **named)
        assert out.read_text() == done.module.to_text(), flags
        found.add(out.read_text())
    assert len(found) >= 3
    explained = said("opt", MODEL, "--explain=all", "-o", tmp_path / "out.hlo").stderr
    assert tw.optimize(module).explanation.strip() in explained


@pytest.mark.parametrize("path", [MODEL, NARROW], ids=tool.fixture_id)
def test_run(path: Path, tmp_path: Path) -> None:
    """By the interpreter and by the simulated machine."""
    values, out = path.with_suffix(".npz"), tmp_path / "out.npz"
    tool.tilewright("run", path, "--inputs", values, "-o", out)
    same_outputs(out, tw.run(path, *inputs_of(path)))
    tool.tilewright(
        "run", path, "--backend", "sim", "--target", "cpu", "--inputs", values, "-o", out
    )
    same_outputs(out, tw.simulate(path, *inputs_of(path), target="cpu"))


def test_verify() -> None:
    """A module that is valid, and one that is not."""
    good = said("verify", MODEL)
    assert good.returncode == 0 and ": ok, " in good.stdout
    path = min((tool.FIXTURES / "verify").rglob("*.hlo"))
    with pytest.raises(tw.VerifyError) as caught:
        tw.Module.from_file(path)
    bad = said("verify", path)
    assert bad.returncode == 1 and str(caught.value.code) in bad.stdout + bad.stderr


def test_check(tmp_path: Path) -> None:
    """Modules that compute the same, and such that do not."""
    same, other = tmp_path / "same.hlo", tmp_path / "other.hlo"
    same.write_text(tw.optimize(MODEL).module.to_text())
    other.write_text(MODEL.read_text().replace("constant(1e-05)", "constant(1)"))
    assert other.read_text() != MODEL.read_text()
    for path, is_equal in ((same, True), (other, False)):
        assert said("check", MODEL, path).returncode == (0 if is_equal else 1)
        assert tw.check(MODEL, path).equal == is_equal
