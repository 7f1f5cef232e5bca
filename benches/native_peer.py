"""Reductions of the crate `native` beside NumPy and XLA:CPU, on one thread.

    cargo build --release -p tilewright-native --example patterns
    taskset -c 0 python benches/native_peer.py

Every number is the time divided by the time in which the same array is read; the time of reading
comes from the example, which measures it for each array. Compilers differ in what they do with one
CPU: XLA runs on as many threads as it may use, so give it one by `taskset`.
"""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "target/release/examples/patterns"
LINE = re.compile(r"\[([\d,]+)\] \[([\d,]+)\] +" + r" +".join([r"([\d.]+)"] * 5))


def least(work: Callable[[], object], turns: int = 9) -> float:
    """The least time of several, in seconds."""
    work()
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def numbers(text: str) -> tuple[int, ...]:
    """Comma-separated whole numbers."""
    return tuple(int(part) for part in text.split(","))


def peers(dims: tuple[int, ...], axes: tuple[int, ...]) -> dict[str, list[float]]:
    """The seconds that NumPy and XLA:CPU take for a sum, a maximum and its place."""
    array = (np.arange(np.prod(dims), dtype=np.float32) % 1009 - 504).reshape(dims)
    placed = jax.device_put(array)
    one = axes[0] if len(axes) == 1 else None
    functions = [
        (array.sum, lambda x: jnp.sum(x, axes)),
        (array.max, lambda x: jnp.max(x, axes)),
    ]
    found: dict[str, list[float]] = {"NumPy": [], "XLA:CPU": []}
    for numpy, xla in functions:
        compiled = jax.jit(xla)
        found["NumPy"].append(least(lambda numpy=numpy: numpy(axis=axes)))
        found["XLA:CPU"].append(least(lambda f=compiled: f(placed).block_until_ready()))
    if one is None:
        return {name: [*times, float("nan")] for name, times in found.items()}
    compiled = jax.jit(lambda x: jnp.argmax(x, one))
    found["NumPy"].append(least(lambda: array.argmax(one)))
    found["XLA:CPU"].append(least(lambda: compiled(placed).block_until_ready()))
    return found


def main() -> None:
    """Prints a line for each pattern."""
    print(
        f"jaxlib {jax.lib.__version__}, NumPy {np.__version__}; time / time of reading"
    )
    print("sum, maximum, its place: native | NumPy | XLA:CPU")
    example = subprocess.run([EXAMPLE, "1"], check=True, capture_output=True, text=True)
    for line in example.stdout.splitlines():
        found = LINE.match(line)
        if not found:
            continue
        dims, axes = numbers(found[1]), numbers(found[2])
        speed, *ours = (float(part) for part in found.groups()[2:])
        reading = 4e-9 * float(np.prod(dims)) / speed
        columns = [ours[:3]]
        columns += [
            [seconds / reading for seconds in times]
            for times in peers(dims, axes).values()
        ]
        shown = " | ".join(
            " ".join(f"{number:6.2f}" for number in column) for column in columns
        )
        print(f"{found[1] + ' over ' + found[2]:32} {shown}", flush=True)


if __name__ == "__main__":
    main()
