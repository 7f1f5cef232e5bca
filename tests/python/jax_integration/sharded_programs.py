"""Programs on eight devices, with `jax.jit` and with `tilewright.jit`.

Run as a script, because the number of devices is fixed when JAX starts. Prints a JSON object with
a record for each of the programs that are named.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

FLAGS = os.environ.get("XLA_FLAGS", "")
os.environ["XLA_FLAGS"] = f"{FLAGS} --xla_force_host_platform_device_count=8"

import jax

jax.config.update("jax_platforms", "cpu")

import numpy as np
import tilewright
from cases import group_norm, numbers
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
EXPLICIT = Mesh(
    np.array(jax.devices()).reshape(4, 2),
    ("a", "b"),
    axis_types=(jax.sharding.AxisType.Explicit,) * 2,
)
X = numbers(8, 16, 16, 64)
# What one device has of it takes long enough to be rewritten.
LARGE = numbers(8, 64, 64, 64)
COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "collective-permute",
    "all-to-all",
    "reduce-scatter",
)


def local(x: Any) -> Any:
    """A norm of what one device has, less its mean over devices."""
    return group_norm(x) - jax.lax.pmean(x, "a")


def placed(*spec: Any) -> Any:
    """The image, divided over the mesh."""
    return jax.device_put(X, NamedSharding(MESH, P(*spec)))


def constrained(x: Any) -> Any:
    """A norm of an image that is divided by channels."""
    sharding = NamedSharding(MESH, P("a", None, None, "b"))
    return group_norm(jax.lax.with_sharding_constraint(x, sharding))


def batch_norm(x: Any) -> Any:
    """A norm over batch and space, both of which are divided."""
    centred = x - x.mean((0, 1, 2))
    return centred * jax.lax.rsqrt((centred**2).mean((0, 1, 2)) + 1e-5)


def sums(x: Any) -> Any:
    """The mean of two sums over devices."""
    both = jax.lax.psum(x, ("a", "b")) + jax.lax.psum(x**2, ("a", "b"))
    return both.mean((0, 1, 2))


def under_mesh(jit: Any) -> Any:
    """A norm on a mesh with explicit axes, which a context sets."""
    function = jit(batch_norm)

    def run(x: Any) -> Any:
        with jax.set_mesh(EXPLICIT):
            return function(x)

    def lower(x: Any) -> Any:
        with jax.set_mesh(EXPLICIT):
            return function.lower(x)

    run.lower = lower
    return run


def mapped(jit: Any, body: Any, **options: Any) -> Any:
    """A `shard_map` of a body."""
    return jax.jit(jax.shard_map(jit(body), mesh=MESH, **options))


PROGRAMS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "batch": (lambda jit: jit(group_norm), lambda: placed("a")),
    "space": (lambda jit: jit(group_norm), lambda: placed(None, "a")),
    "batch_norm": (lambda jit: jit(batch_norm), lambda: placed("a", "b")),
    "donated": (
        lambda jit: jit(batch_norm, donate_argnums=0),
        lambda: placed("a", "b"),
    ),
    "constraint": (lambda jit: jit(constrained), lambda: X),
    "out_shardings": (
        lambda jit: jit(group_norm, out_shardings=NamedSharding(MESH, P("b"))),
        lambda: placed("a"),
    ),
    "around_shard_map": (
        lambda jit: jit(
            jax.shard_map(
                group_norm, mesh=MESH, in_specs=P("a", "b"), out_specs=P("a", "b")
            )
        ),
        lambda: X,
    ),
    "in_shard_map": (
        lambda jit: mapped(jit, local, in_specs=P("a", "b"), out_specs=P("a", "b")),
        lambda: LARGE,
    ),
    "grad_in_shard_map": (
        lambda jit: mapped(
            jit,
            jax.grad(lambda x: jax.lax.psum((local(x) ** 2).sum(), ("a", "b"))),
            in_specs=P("a", "b"),
            out_specs=P("a", "b"),
        ),
        lambda: LARGE,
    ),
    "in_partial_shard_map": (
        lambda jit: mapped(
            jit, local, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}
        ),
        lambda: X,
    ),
    "explicit": (
        under_mesh,
        lambda: jax.device_put(X, NamedSharding(EXPLICIT, P("a", "b"))),
    ),
    "sums_in_shard_map": (
        lambda jit: mapped(jit, sums, in_specs=P("a", "b"), out_specs=P()),
        lambda: X,
    ),
    "pmap": (
        lambda jit: jax.pmap(jit(local), axis_name="a"),
        lambda: LARGE.reshape(8, 1, 64, 64, 64),
    ),
}


def training(jit: Any) -> Any:
    """Three steps of data-parallel training; the parameters after them."""
    from models import MODELS

    made = MODELS["resnet_group_norm"](2)
    whole = NamedSharding(MESH, P())
    step = jit(made.step, donate_argnums=0, out_shardings=(whole, whole))

    def run(batch: Any) -> Any:
        state = jax.device_put(jax.tree.map(np.array, made.state), whole)
        for _ in range(3):
            state, loss = step(state, batch)
        return loss

    run.lower = lambda batch: step.lower(jax.device_put(made.state, whole), batch)
    return run


def batch() -> Any:
    """A batch that is divided over the mesh."""
    from models import MODELS

    made = MODELS["resnet_group_norm"](2)
    return jax.device_put(made.batch, NamedSharding(MESH, P("a")))


PROGRAMS["training"] = (training, batch)

SMALL = numbers(8, 8, 8, 64)
ROW = numbers(64)


def scaled_norm(kind: str) -> Any:
    """A norm with a scale and a bias."""
    axes = {"batch": (0, 1, 2), "group": (1, 2, 4), "layer": (-1,)}[kind]

    def norm(x: Any, scale: Any, bias: Any) -> Any:
        y = x.reshape(*x.shape[:3], 8, -1) if kind == "group" else x
        y = y - y.mean(axes, keepdims=True)
        y = y * jax.lax.rsqrt((y**2).mean(axes, keepdims=True) + 1e-5)
        return y.reshape(x.shape) * scale + bias

    return norm


def divided(kind: str, image: Any, gradient: Any, row: Any) -> Any:
    """The result of a norm and its gradients: the image, its gradient, and those of the rows, divided as
    these say."""

    def make(jit: Any) -> Any:
        norm = scaled_norm(kind)

        def step(x: Any) -> Any:
            out, back = jax.vjp(norm, x, ROW, ROW)
            return (out, *back(x * 2.0))

        places = (image, gradient, row, row)
        return jit(step, out_shardings=tuple(NamedSharding(MESH, P(*one)) for one in places))

    def argument() -> Any:
        return jax.device_put(SMALL, NamedSharding(MESH, P(*image)))

    return make, argument


# The image along one axis of its own; its gradient along another one; rows along each axis of the mesh.
IMAGES = [("a",), (None, "a"), (None, None, "a"), (None, None, None, "a"), (("a", "b"),)]
for kind in ("batch", "group", "layer"):
    for image in IMAGES:
        for gradient in (image, ("b",), (None, None, None, "b")):
            for row in ((), ("a",), ("b",)):
                name = f"divided {kind} {image} {gradient} {row}"
                PROGRAMS[name] = divided(kind, image, gradient, row)


def record(name: str) -> dict[str, Any]:
    """What a program gives with either `jit`."""
    make, argument = PROGRAMS[name]
    tilewright.report(clear=True)
    counts, values = [], []
    for jit in (jax.jit, tilewright.jit):
        function, x = make(jit), argument()
        text = function.lower(x).compile().as_text()
        counts.append(
            {op: len(re.findall(rf" {op}(?:-start)?\(", text)) for op in COLLECTIVES}
        )
        out = function(x)
        leaves = jax.tree.leaves(out)
        shardings = [str(leaf.sharding) for leaf in leaves]
        values.append((shardings, [np.asarray(leaf) for leaf in leaves]))
    (plain_sharding, plain), (our_sharding, ours) = values
    gaps = [np.abs(a - b).max() / max(1.0, np.abs(a).max()) for a, b in zip(plain, ours)]
    return {
        "collectives": counts,
        "difference": float(max(gaps)),
        "same_sharding": plain_sharding == our_sharding,
        "outcomes": [entry.outcome for entry in tilewright.report()],
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(PROGRAMS))
        sys.exit()
    warnings.simplefilter("error", tilewright.TilewrightWarning)
    print(json.dumps({name: record(name) for name in sys.argv[1:]}))
