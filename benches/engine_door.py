#!/usr/bin/env python3
"""`tilewright.jit` compiled for devices that are not there: does it compile, and what does it cost?

    python benches/engine_door.py --engine tpu-v5e|tpu-v6e|xla-gpu-h100 [--wheel FILE]
        [--only SUBSTRING] [--target NAME]

Each program is compiled ahead of time by `jax.jit` and by `tilewright.jit`, for one device and, divided
over a mesh, for all of the engine's topology (eight chips of a TPU v5e, 4 x 2). A row has the compiler's
estimates of both; what does not compile, or costs more than 1.02 times as much, ends the command with 1.
`--wheel` installs the package into the engine's environment (`maturin build --release`).
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

from environment import TARGETS, in_environment

if TYPE_CHECKING:
    from door_programs import Program

# More than this times the original is worse.
WORSE = 1.02


def compiled(program: Program, jit: Callable[..., Any], devices: list[Any]) -> tuple[float, int]:
    """The estimate of a program that is compiled for devices, and the number of kernels that have none.
    Eight devices are a mesh of 4 x 2."""
    import jax
    import numpy as np
    from compiled import Module
    from door_programs import BATCH, MODEL
    from jax.sharding import Mesh, NamedSharding

    columns = 2 if len(devices) % 2 == 0 else 1
    mesh = Mesh(np.array(devices).reshape(-1, columns), (BATCH, MODEL))
    arguments = [
        jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(mesh, spec))
        for shape, spec in zip(program.shapes, program.specs)
    ]
    made = jit(program.on(mesh), donate_argnums=program.donated)
    cost, _, _, unknown = Module(made.lower(*arguments).compile().as_text()).estimate()
    return cost, sum(unknown.values())


def main() -> None:
    """Prints a row for each program."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--engine", choices=TARGETS, required=True, help="whose compiler is asked")
    parser.add_argument("--wheel", type=Path, help="the package, to install")
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--target", default="auto", help="as for `tilewright.jit`")
    given = parser.parse_args()
    in_environment(given.engine)
    os.environ["JAX_PLATFORMS"] = "cpu"
    if given.wheel is not None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"]
        subprocess.run([*pip, given.wheel], check=True)

    import engines

    engine = engines.ENGINES[given.engine]
    os.environ.update(engine.environment)
    import jax
    from door_programs import programs

    try:
        import tilewright
    except ImportError:
        sys.exit("tilewright is not installed in the engine's environment: give --wheel FILE")
    devices = engine.devices()
    print(f"{engine.name}: estimates of its compiler in {engine.unit}, not measurements\n")
    print("| program | devices | jax.jit | tilewright.jit | ratio | kernels without |")
    print("|---|---:|---:|---:|---:|---:|")
    bad = []
    for program in programs():
        if given.only not in program.name:
            continue
        for some in [devices[:1], devices][: min(len(devices), 2)]:
            where = f"{program.name} | {len(some)}"
            try:
                plain, _ = compiled(program, jax.jit, some)
                rewritten = functools.partial(tilewright.jit, target=given.target)
                ours, unknown = compiled(program, rewritten, some)
            except Exception as error:
                bad.append(f"{where}: {str(error).splitlines()[0][:200]}")
                continue
            ratio = f"{plain / ours:.2f}" if plain and ours else "no estimate"
            print(f"| {where} | {plain:,.1f} | {ours:,.1f} | {ratio} | {unknown} |", flush=True)
            if ours > plain * WORSE:
                bad.append(f"{where}: costs {ours / plain:.2f} times as much")
    chosen = sorted({entry.target for entry in tilewright.report() if entry.target})
    print(f"\ntarget: {', '.join(chosen) or 'none: functions are left as they are'}")
    for line in bad:
        print(f"bad: {line}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
