"""Guarded sums through XLA:CPU, beside the same program in f64: the errors of both branches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import tilewright
import tool
import xla

# A variance of f32[2,64,64,16] along the image, and a product with the centred array.
SOURCE = tool.ROOT / "fixtures/rewrite/shifted-moments/guarded_gradient.hlo"
# A sum of a gradient whose factors wait for both, with a guard, beside those of both and of the sum of the centred array.
LATE = tool.ROOT / "fixtures/rewrite/late-factors/gradient.hlo"
# Small arrays do not stay in its vector memory, and branches cost little.
TARGET = 'base = "tpu-v5e"\nvector_memory_bytes = 524288\nguard_cycles = 1\n'
# As the contract says: 4 times the error, and 4 units in the last place of the largest value.
GROWTH, SLACK = 4.0, 4 * 2.0**-24


def data(kind: str) -> list[np.ndarray]:
    """An array with a gradient."""
    draw = np.random.default_rng(7)
    x, dy = (draw.standard_normal((2, 64, 64, 16)).astype(np.float32) for _ in range(2))
    if kind == "far from zero":
        x = x * np.float32(0.01) + np.float32(1000)
    elif kind == "outliers":
        x.reshape(-1)[::97] = 1e5
    elif kind == "halves":
        x[:, :32] += 1000
    elif kind == "padded":
        x[:, :, 20:60] = 0
    elif kind == "constant":
        x[...] = 7.7
    elif kind == "ones":
        dy[...] = 1
    elif kind == "one":
        dy[:, 1:] = dy[:, :, 1:] = 0
    elif kind == "along":
        dy[...] = x * np.float32(3)
    return [x, dy]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the target."""
    file = tmp_path_factory.mktemp("guards") / "target.toml"
    file.write_text(TARGET)
    return file


@pytest.fixture(scope="module", params=[(SOURCE, 2), (LATE, 4)], ids=["moments", "late factors"])
def programs(target: Path, request: pytest.FixtureRequest) -> list[str]:
    """A program as it is, guarded, and in f64."""
    file, guards = request.param
    out = target.with_name("out.hlo")
    tool.tilewright("opt", file, "--target", target, "-o", out)
    source, guarded = file.read_text(), Path(out).read_text()
    assert guarded.count("tilewright_guard=") == guards
    return [source, guarded, source.replace("f32[", "f64[")]


@pytest.mark.parametrize(
    ("options", "guards"),
    [({}, 2), ({"guards": False}, 0), ({"exact": True}, 0), ({"fast_math": True}, 0)],
)
def test_guards_are_an_option(target: Path, options: dict[str, bool], guards: int) -> None:
    text = str(tilewright.optimize(SOURCE, str(target), **options).module)
    assert text.count("tilewright_guard=") == guards


def test_runs_count_guards(programs: list[str]) -> None:
    """All hold on normal data, and some fail where the middle of images, which is sampled, lies apart."""
    apart = data("padded")
    apart[0][apart[0] != 0] += 3
    for inputs, fail in ((data("normal"), False), (apart, True)):
        guards = tilewright.run(programs[1], *inputs).report.guards
        assert any(guard.failed for guard in guards) == fail
        assert all(guard.held + guard.failed == 1 for guard in guards)


@pytest.mark.parametrize(
    "kind", ["normal", "far from zero", "outliers", "halves", "padded", "constant", "ones", "one", "along"]
)
def test_errors_keep_the_contract(programs: list[str], kind: str) -> None:
    inputs = data(kind)
    with jax.enable_x64(True):
        exact = xla.compile_text(programs[2]).run([array.astype(np.float64) for array in inputs])
    original, guarded = (xla.compile_text(text).run(inputs) for text in programs[:2])
    for wanted, before, after in zip(exact, original, guarded):
        was, now = (np.abs(found - wanted).max() for found in (before, after))
        assert now <= GROWTH * was + SLACK * np.abs(wanted).max(), f"{kind}: {was}, then {now}"


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_is_what_it_was(programs: list[str], value: float) -> None:
    inputs = data("normal")
    inputs[0][1, 5, 6, 7] = value
    original, guarded = (xla.compile_text(text).run(inputs) for text in programs[:2])
    for before, after in zip(original, guarded):
        np.testing.assert_array_equal(np.isnan(before), np.isnan(after))
        np.testing.assert_array_equal(np.isinf(before), np.isinf(after))


def test_devices_agree_on_branches(tmp_path: Path) -> None:
    """Whether a guard holds or fails, on all devices or on one, and with exchanges in its branch."""
    file = tmp_path / "target.toml"
    file.write_text(TARGET.replace("524288", "16384") + "hbm_bytes_per_cycle = 1\n")
    command = [sys.executable, str(Path(__file__).with_name("guarded_devices.py")), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for record in json.loads(done.stdout.splitlines()[-1]):
        assert record["guards"], record
        for was, now in zip(record["before"], record["after"]):
            assert now <= GROWTH * was + SLACK, record
