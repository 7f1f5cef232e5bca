#!/usr/bin/env python3
"""Steps of training that several processes share, plain and rewritten.

    python benches/distributed.py [--processes N ...] [--delay MS ...] [--only TEXT] [--small]
                                  [--turns N] [--json FILE]

Each process has one device; they meet through `jax.distributed` and exchange arrays by Gloo, over
loopback or, with a delay, over devices that deliver packets late (`delayed_network.py`). The first
process compares the results of both programs with the same function on one device in f64, and times
both in turn. Times are medians, and so is how many times as fast a turn was. `empty` is the time of an all-reduce of one number.

Needs the package, flax and optax.
"""

from __future__ import annotations

# JAX has functions without types.
# mypy: allow-untyped-calls
import argparse
import contextlib
import functools
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "python"))

import delayed_network

# The seconds after which the processes of a run are ended.
PATIENCE = 600
# How the devices of each step are arranged: along the axis "data" or along "model".
STEPS = {
    "batch norm step, batch": "data",
    "Flax batch norm step, shard_map": "data",
    "group norm step, batch and space": "model",
    "layer norm step, channels": "model",
    "ResNet step with batch norm, data": "data",
    "ResNet step with group norm, space": "model",
    "GPT step, data": "data",
    "GPT step, tensor": "model",
}


@dataclass(frozen=True)
class Row:
    """What the first process knows of a step; times in milliseconds."""

    name: str
    processes: int
    delay: float
    rounds: tuple[int, int]
    times: tuple[float, float]
    # The median of how many times as fast the rewritten program was, turn by turn.
    ratio: float
    errors: tuple[float, float]
    floor: float
    is_rewritten: bool


@contextlib.contextmanager
def rewriting(seen: list[bool]) -> Iterator[None]:
    """Rewrites whatever JAX compiles; notes whether that changed anything."""
    import tilewright as tw
    from tilewright._jax import _internals as internals

    before = internals.compile_function()

    def compiles(backend: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        original = tw.Module.from_proto(internals.to_hlo(module))
        new = tw.optimize(original, target="cpu").module
        seen.append(new != original)
        bytecode = internals.to_stablehlo(new.to_proto())
        return before(backend, internals.from_bytecode(bytecode, module.context), *args, **kwargs)

    internals.set_compile_function(compiles)
    try:
        yield
    finally:
        internals.set_compile_function(before)


def compiled(function: Callable[..., Any], arguments: Any, seen: list[bool] | None) -> Any:
    """A step compiled by JAX; rewritten if there is a list that notes so."""
    import jax

    # With a `tilewright.jit` that takes programs for several devices, it can stand here alone.
    with contextlib.nullcontext() if seen is None else rewriting(seen):
        # JAX remembers what it compiled for a function, so this is another one.
        again = functools.partial(function)
        return jax.jit(again, keep_unused=True).lower(*arguments).compile()


class Process:
    """One of the processes that share the steps."""

    def __init__(self, options: argparse.Namespace) -> None:
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(options.address, options.count, options.process)
        self.options = options
        self.is_first = options.process == 0

    def steps(self) -> Iterator[Any]:
        """The cases that the options ask for."""
        from sharded import manual, models, norms

        image = norms.SMALL_IMAGE if self.options.small else norms.IMAGE
        for module in (norms.cases(image), manual.cases(image), models.cases()):
            for case in module:
                if case.name in STEPS and self.options.only in case.name:
                    yield case

    def mesh(self, name: str, devices: Any) -> Any:
        """Devices along the axis of a step."""
        import numpy as np
        from jax.sharding import Mesh

        dims = (-1, 1) if STEPS[name] == "data" else (1, -1)
        return Mesh(np.array(devices).reshape(dims), ("data", "model"))

    def placed(self, case: Any, mesh: Any) -> Any:
        """The arguments of a case, each process with its part."""
        import jax
        from jax.sharding import NamedSharding

        def place(value: Any, leaf: Any) -> Any:
            sharding = NamedSharding(mesh, leaf.spec)
            return jax.make_array_from_callback(value.shape, sharding, lambda at: value[at])

        return case.tree(list(map(place, case.draw(), case.leaves())))

    def error(self, case: Any, outputs: Any) -> float:
        """How far outputs are from those of one device in f64, on this process."""
        import jax
        import numpy as np
        import xla

        with jax.enable_x64(True):
            wide = [v.astype(np.float64) if v.dtype.kind == "f" else v for v in case.draw()]
            function = case.build(self.mesh(case.name, jax.local_devices()[:1]))
            exact = jax.tree.leaves(jax.jit(function, keep_unused=True)(*case.tree(wide)))
        return max(
            xla.error(np.asarray(shard.data), np.asarray(whole)[shard.index])
            for got, whole in zip(jax.tree.leaves(outputs), exact, strict=True)
            for shard in got.addressable_shards
        )

    def row(self, case: Any) -> Row:
        """Compares and times a step."""
        import jax
        import numpy as np
        import xla
        from tilewright._jax._traffic import traffic

        mesh = self.mesh(case.name, jax.devices())
        arguments = self.placed(case, mesh)
        seen: list[bool] = []
        programs = [compiled(case.build(mesh), arguments, each) for each in (None, seen)]
        if not seen:
            raise RuntimeError("the rewriter was not asked")
        errors = [self.error(case, program(*arguments)) for program in programs]
        times: list[list[float]] = [[], []]
        for _ in range(self.options.turns):
            for program, taken in zip(programs, times):
                start = time.perf_counter()
                jax.block_until_ready(program(*arguments))
                taken.append(1000 * (time.perf_counter() - start))
        return Row(
            case.name,
            self.options.count,
            self.options.delayed,
            pair([traffic(program.as_text()).rounds for program in programs]),
            pair([statistics.median(taken) for taken in times]),
            statistics.median(plain / new for plain, new in zip(*times)),
            pair(errors),
            xla.TOLERANCE[np.dtype(np.float32)],
            any(seen),
        )

    def empty(self) -> float:
        """Milliseconds of an all-reduce of one number."""
        import jax
        import numpy as np
        from jax.sharding import Mesh, NamedSharding
        from jax.sharding import PartitionSpec as P

        mesh = Mesh(np.array(jax.devices()), ("data",))
        sharding = NamedSharding(mesh, P("data"))
        value = jax.make_array_from_callback(
            (self.options.count,), sharding, lambda at: np.ones(1, np.float32)
        )
        total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, P()))
        taken = []
        for _ in range(self.options.turns + 1):
            start = time.perf_counter()
            jax.block_until_ready(total(value))
            taken.append(1000 * (time.perf_counter() - start))
        return statistics.median(taken)

    def run(self) -> None:
        """All steps; the first process prints a line of JSON for each."""
        took = self.empty()
        if self.is_first:
            print(json.dumps({"empty": took}), flush=True)
        for case in self.steps():
            row = self.row(case)
            if self.is_first:
                print(json.dumps({"row": asdict(row)}), flush=True)


def pair(two: list[Any]) -> tuple[Any, Any]:
    """Of the plain program and of the rewritten one."""
    return two[0], two[1]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def started(options: argparse.Namespace, count: int, delay: float) -> list[subprocess.Popen[str]]:
    """The processes of one run."""
    host = delayed_network.address(0) if delay else "127.0.0.1"
    where = f"{host}:{free_port()}"
    common = ["--count", str(count), "--address", where, "--delayed", str(delay)]
    common += ["--only", options.only, "--turns", str(options.turns)]
    common += ["--small"] * options.small
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    # One thread for each process, as far as XLA lets us: they share the cores.
    environment.pop("XLA_FLAGS", None)
    return [
        subprocess.Popen(
            [sys.executable, __file__, "--process", str(process), *common],
            stdout=subprocess.PIPE if process == 0 else subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        for process in range(count)
    ]


def ended(children: list[subprocess.Popen[str]]) -> None:
    """Ends processes."""
    for child in children:
        child.kill()
        child.wait()


def records_of(options: argparse.Namespace, count: int, delay: float) -> Iterator[dict[str, Any]]:
    """What the first of some processes says."""
    switch = delayed_network.Switch(delay / 1000)
    for process in range(count if delay else 0):
        switch.open(process)
    children = started(options, count, delay)
    for process, child in enumerate(children if delay else ()):
        switch.give(process, child.pid)
    carrier = threading.Thread(target=switch.run)
    if delay:
        carrier.start()
    timer = threading.Timer(PATIENCE, ended, [children])
    timer.start()
    try:
        for line in children[0].stdout or ():
            if line.startswith("{"):
                yield json.loads(line)
        if any(child.wait() for child in children):
            raise SystemExit("a process failed")
    finally:
        timer.cancel()
        ended(children)
        if delay:
            switch.stop.set()
            carrier.join()
            switch.close()


def printed(row: dict[str, Any]) -> str:
    """A row of the table."""
    (plain, new), (old_error, new_error) = row["times"], row["errors"]
    cells = [row["name"], row["processes"], row["delay"], *row["rounds"]]
    cells += [f"{plain:.1f}", f"{new:.1f}", f"{row['ratio']:.2f}"]
    cells += [f"{old_error:.0e}", f"{new_error:.0e}", "yes" if row["is_rewritten"] else "no"]
    return f"| {' | '.join(map(str, cells))} |"


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--processes", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--delay", type=float, nargs="*", default=[0, 1], help="milliseconds")
    parser.add_argument("--only", default="", help="names that contain this text")
    parser.add_argument("--small", action="store_true", help="smaller images")
    parser.add_argument("--turns", type=int, default=15, help="how often each step is timed")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    for name, kind in (("process", int), ("count", int), ("address", str), ("delayed", float)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Prints the table, row by row."""
    options = parsed()
    if options.process is not None:
        if options.delayed:
            delayed_network.enter(options.process)
        Process(options).run()
        return
    inside = "TILEWRIGHT_INSIDE"
    if any(options.delay) and inside not in os.environ:
        if delayed_network.is_available():
            # Namespaces of the network can be made in a namespace of users.
            command = ["unshare", "-Urnu", sys.executable, *sys.argv]
            os.execvpe(command[0], command, {**os.environ, inside: "1"})
        print("no delays: this machine lets us make no TUN device in a namespace", file=sys.stderr)
        options.delay = [delay for delay in options.delay if not delay]
    if inside in os.environ:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    print(
        "| step | processes | delay | rounds | rewritten | ms | rewritten | times as fast "
        "| error | rewritten | changed |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    )
    rows = []
    for count in options.processes:
        for delay in options.delay:
            for record in records_of(options, count, delay):
                if "empty" in record:
                    took = f"{record['empty']:.1f}"
                    print(f"| empty | {count} | {delay} | 1 | | {took} | | | | | |", flush=True)
                    continue
                rows.append(record["row"])
                print(printed(rows[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
