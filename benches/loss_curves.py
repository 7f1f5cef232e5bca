#!/usr/bin/env python3
"""Losses of fifty training steps, plain and rewritten, beside those of another version of JAX.

    python benches/loss_curves.py [--other PYTHON] [--steps N] [--only SUBSTRING]

Trains the models of tests/python/jax_integration/models.py with `jax.jit` and with
`tilewright.jit`, and with `jax.jit` of another Python's JAX.  The table has, for each model, the
first and the last loss and the largest difference to the plain losses in units of the first one.
A rewriter that is as harmless as another version of XLA differs no more than that.  Needs Flax and
Optax, in the other Python, too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests" / "python" / "jax_integration"
sys.path.insert(0, str(TESTS))

import jax

from models import MODELS


def losses(jit: Any, name: str, steps: int) -> list[float]:
    """The losses of the first steps of a model."""
    training = MODELS[name](1)
    step, state, found = jit(training.step), training.state, []
    for _ in range(steps):
        state, loss = step(state, training.batch)
        found.append(float(loss))
    return found


def curves(steps: int, only: str) -> dict[str, list[float]]:
    """The losses of every model with plain JAX."""
    return {name: losses(jax.jit, name, steps) for name in MODELS if only in name}


def of_other(python: str, steps: int, only: str) -> dict[str, list[float]]:
    """The same in another Python."""
    command = [python, __file__, "--json", "--steps", str(steps), "--only", only]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def gap(ones: list[float], others: list[float]) -> str:
    """The largest difference of two curves in units of the first loss."""
    return f"{max(abs(a - b) for a, b in zip(ones, others, strict=True)) / abs(ones[0]):.1e}"


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--other", help="a Python with another version of JAX")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--json", action="store_true", help="print the plain losses alone")
    options = parser.parse_args()
    plain = curves(options.steps, options.only)
    if options.json:
        print(json.dumps(plain))
        return
    import tilewright

    others = of_other(options.other, options.steps, options.only) if options.other else {}
    print("| model | first loss | last loss | tilewright.jit | other JAX |")
    print("|---|---:|---:|---:|---:|")
    for name, curve in plain.items():
        ours = gap(curve, losses(tilewright.jit, name, options.steps))
        other = gap(curve, others[name]) if name in others else "-"
        print(f"| {name} | {curve[0]:.3f} | {curve[-1]:.3f} | {ours} | {other} |", flush=True)


if __name__ == "__main__":
    main()
