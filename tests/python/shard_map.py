"""Programs that say themselves what each of eight devices does, run by JAX and by `run`.

Run as a script, because the number of devices is fixed when JAX starts.  Prints one JSON
object: for each partitioner, GSPMD being the older one, a list with a record for each program.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

FLAGS = os.environ.get("XLA_FLAGS", "")
os.environ["XLA_FLAGS"] = f"{FLAGS} --xla_force_host_platform_device_count=8"

import jax

jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import numpy as np
import tilewright as tw
import xla
from jax import lax, shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

DEVICES = np.array(jax.devices())
MESH = Mesh(DEVICES.reshape(4, 2), ("x", "y"))
CUBE = Mesh(DEVICES.reshape(2, 2, 2), ("a", "b", "c"))
MIXED = Mesh(DEVICES[[3, 1, 0, 2, 7, 6, 5, 4]].reshape(4, 2), ("x", "y"))
ROW = Mesh(DEVICES, ("d",))
Function = Callable[..., Any]


def mapped(
    f: Function, ins: Any, out: Any, mesh: Mesh = MESH, axes: frozenset[str] = frozenset()
) -> Function:
    """The function of shards as one of whole arrays; on some axes alone if they are named."""
    named = {"axis_names": axes} if axes else {}
    return shard_map(f, mesh=mesh, in_specs=ins, out_specs=out, check_vma=False, **named)


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """A batch norm whose statistics are of all devices."""
    mean = lax.pmean(x.mean((0, 1)), ("x", "y"))
    var = lax.pmean(((x - mean) ** 2).mean((0, 1)), ("x", "y"))
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale


def where(x: jax.Array) -> jax.Array:
    """Which device has which part."""
    return x + 100 * lax.axis_index("x") + 1000 * lax.axis_index("y")


def programs() -> Iterator[tuple[str, Function, tuple[tuple[int, ...], ...]]]:
    """Names, functions of whole arrays, and the shapes of these."""
    both = P("x", "y")
    yield "places", mapped(where, both, both), ((8, 6),)
    yield "places of another order", mapped(where, both, both, MIXED), ((8, 6),)
    yield "dims cut twice", mapped(where, P(("y", "x")), P(("y", "x"))), ((16, 3),)
    yield "other dims", mapped(where, P(None, "y", "x"), P("x", None, "y")), ((2, 4, 8),)
    yield "the same on some", mapped(lambda x: 2 * x, P("y"), P("y")), ((4, 3),)
    cube = mapped(lambda x: lax.psum(x, "b"), P("c", ("a", "b")), P("c", "a"), CUBE)
    yield "three axes", cube, ((4, 8),)
    turned = mapped(lambda x: lax.ppermute(x, "d", [(i, (i + 3) % 8) for i in range(8)]),
                    P("d"), P("d"), ROW)
    yield "a ring", turned, ((16, 2),)
    synced = mapped(norm, (P("x", "y"), P()), P("x", "y"))
    yield "batch norm", synced, ((8, 4, 3), (3,))
    yield "its gradient", jax.grad(lambda x, s: (synced(x, s) ** 3).sum(), (0, 1)), (
        (8, 4, 3),
        (3,),
    )
    two = mapped(lambda x, y: (x @ y, lax.psum(y.sum(), ("x", "y"))),
                 (P("x", None), P(None, "y")), (P("x", "y"), P()))
    yield "two results", two, ((8, 3), (3, 4))
    some = mapped(lambda x: lax.psum(x, "x"), P("x"), P(), axes=frozenset({"x"}))
    yield "some axes", some, ((8, 6),)
    loop = mapped(lambda x: lax.fori_loop(0, 3, lambda i, a: lax.psum(a, "y") / (i + 1), x),
                  both, both)
    yield "a loop", loop, ((8, 4),)
    yield "whole before and after", lambda x: synced(jnp.sin(x), jnp.ones(3)).sum(0), ((8, 4, 3),)


def record(name: str, function: Function, shapes: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    """The largest error of what `run` gives on any device."""
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    lowered = jax.jit(function).lower(*arguments)
    expected = jax.tree.leaves(lowered.compile()(*arguments))
    text = lowered.as_text(dialect="hlo")
    rows = jax.tree.leaves(tw.run(text, *arguments).output)
    errors = [
        xla.error(row, np.asarray(value))
        for value, of_all in zip(expected, rows, strict=True)
        for row in of_all
    ]
    return {
        "name": name,
        "devices": len(rows[0]),
        "error": max(errors),
        # On every device.
        "stays_equal": tw.check(text, tw.optimize(text).module).equal,
        "is_for_shardy": "xla.sdy" in text,
    }


def records(partitioner: str) -> list[dict[str, Any]]:
    """What becomes of each program that is lowered for a partitioner."""
    jax.config.update("jax_use_shardy_partitioner", partitioner == "shardy")
    jax.clear_caches()
    return [record(*program) for program in programs()]


if __name__ == "__main__":
    json.dump({name: records(name) for name in ("shardy", "gspmd")}, sys.stdout)
