"""Writes the protos of JAX programs, before and after XLA's optimisation.

A program of its own because the number of devices is fixed when JAX starts:

    python dumps.py FOLDER
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAGS = os.environ.get("XLA_FLAGS", "")
os.environ["XLA_FLAGS"] = f"{FLAGS} --xla_force_host_platform_device_count=8"

import jax

jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

X, W = jnp.ones((8, 16)), jnp.ones((16, 32))


def mlp(x: jax.Array, w: jax.Array) -> jax.Array:
    """A layer and a sum."""
    return jnp.tanh(x @ w).sum()


def collectives(x: jax.Array) -> jax.Array:
    """Most of the collectives of JAX."""
    ring = [(i, (i + 1) % 4) for i in range(4)]
    gathered = lax.all_gather(x, "y", axis=0, tiled=True).sum()
    return lax.psum(x, "x") + gathered + lax.ppermute(x, "y", ring)


def quantised(x: jax.Array) -> jax.Array:
    """Elements narrower than a byte."""
    table = jnp.array(np.arange(-8, 8), jnp.int4)
    return (x.astype(jnp.int4) + table).astype(jnp.int8)


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions, jitted or to jit, with their arguments."""
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
    xs = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    ws = jax.device_put(W, NamedSharding(mesh, P("y", None)))

    def mapped(f: Callable[..., Any], inside: P, outside: P) -> Callable[..., Any]:
        return jax.shard_map(
            f, mesh=mesh, in_specs=inside, out_specs=outside, check_vma=False
        )

    def exchange(x: jax.Array) -> jax.Array:
        return lax.all_to_all(x, "y", 1, 0, tiled=True) + 0

    def scatter(x: jax.Array) -> jax.Array:
        return lax.psum_scatter(x, "y", scatter_dimension=1, tiled=True)

    return {
        "mlp": (mlp, (X, W)),
        "grad": (jax.grad(mlp, (0, 1)), (X, W)),
        "sort": (lambda x: jnp.sort(x, 0), (X,)),
        "scan": (lambda x: lax.scan(lambda c, a: (c + a, c * a), x[0], x), (X,)),
        "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (X,)),
        "while": (
            lambda x: lax.while_loop(lambda c: c.sum() < 99, lambda c: c * 2, x),
            (X,),
        ),
        "fft": (jnp.fft.fft, (X,)),
        "cholesky": (jnp.linalg.cholesky, (jnp.eye(4),)),
        "random": (lambda k: jax.random.normal(k, (4,)), (jax.random.PRNGKey(0),)),
        "conv": (
            lambda a, b: lax.conv(a, b, (1, 1), "SAME"),
            (jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3))),
        ),
        "gather": (lambda x, i: x[i].at[i].add(1.0), (X, jnp.array([1, 2]))),
        "bf16": (lambda x, w: x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16), (X, W)),
        "int4": (quantised, (X,)),
        "donated": (jax.jit(lambda x, y: (x + y, y), donate_argnums=0), (X, X + 1)),
        "sharded": (mlp, (xs, ws)),
        "sharded_grad": (jax.grad(mlp, (0, 1)), (xs, ws)),
        "collectives": (mapped(collectives, P("x", "y"), P(None, "y")), (xs,)),
        "all_to_all": (mapped(exchange, P("x", None), P("x", "y")), (xs,)),
        "reduce_scatter": (mapped(scatter, P("x", None), P("x", "y")), (xs,)),
    }


def main(folder: Path) -> None:
    """Writes NAME.before.pb and NAME.after.pb."""
    for name, (function, arguments) in programs().items():
        lowered = jax.jit(function).lower(*arguments)
        before = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
        (after,) = lowered.compile().runtime_executable().hlo_modules()
        (folder / f"{name}.before.pb").write_bytes(before)
        after_bytes = after.as_serialized_hlo_module_proto()
        (folder / f"{name}.after.pb").write_bytes(after_bytes)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
