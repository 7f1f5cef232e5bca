"""A program for several devices: the function, how its arguments are divided, and their values."""

from __future__ import annotations

# JAX has functions without types.
# mypy: allow-untyped-calls
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Function = Callable[..., Any]
WHOLE = P()
# The mean of images that are far from zero; their deviation is 1.
FAR = 100.0


@dataclass(frozen=True)
class Leaf:
    """An argument: its dims, how a mesh divides them, its type, and the kind of its values."""

    dims: tuple[int, ...]
    spec: P = field(default_factory=P)
    kind: str = "image"
    dtype: Any = jnp.float32
    # Integers are less than this.
    most: int = 1

    def struct(self, mesh: Mesh | None) -> jax.ShapeDtypeStruct:
        """What JAX lowers for."""
        sharding = None if mesh is None else NamedSharding(mesh, self.spec)
        return jax.ShapeDtypeStruct(self.dims, self.dtype, sharding=sharding)

    def draw(self, rng: np.random.Generator, mean: float) -> np.ndarray:
        """Random values; those of images have this mean."""
        if jnp.issubdtype(self.dtype, jnp.integer):
            return rng.integers(0, self.most, self.dims).astype(self.dtype)
        normal = rng.standard_normal(self.dims)
        if self.kind == "image":
            normal += mean
        elif self.kind == "weight":
            normal /= math.sqrt(math.prod(self.dims[:-1]))
        elif self.kind == "scale":
            normal = 1 + 0.1 * normal
        elif self.kind == "bias":
            normal *= 0.1
        elif self.kind == "positive":
            normal = 0.01 + 0.1 * normal**2
        elif self.kind != "cotangent":
            raise ValueError(f"no such kind of values: {self.kind}")
        return np.asarray(normal.astype(np.float32).astype(self.dtype))


@dataclass(frozen=True)
class Case:
    """A named program.

    `build` makes the function of whole arrays for a mesh. A mesh of one device gives the same
    function without communication, unless `plain` is that function.
    """

    name: str
    build: Callable[[Mesh], Function]
    arguments: tuple[Any, ...]
    # The mesh: "grid" is 4 x 2 devices, "row" is all 8 along one axis.
    mesh: str = "grid"
    plain: Function | None = None
    is_shardy: bool = True
    # Whether the types of arrays say how they are divided: JAX constrains the result of each op.
    is_explicit: bool = False
    # How the outputs are divided, if the devices are replicas, as `pmap` once had it.
    replicas: tuple[P, ...] = ()

    def leaves(self) -> list[Leaf]:
        """The arguments in the order of the program's parameters."""
        found: list[Leaf] = jax.tree.leaves(
            self.arguments, is_leaf=lambda one: isinstance(one, Leaf)
        )
        return found

    def draw(self, mean: float = 0.0) -> list[np.ndarray]:
        """The same random values at each call; images have this mean."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [leaf.draw(rng, mean) for leaf in self.leaves()]

    def tree(self, values: Sequence[Any]) -> Any:
        """Values in the order of `leaves`, as the function takes them."""
        structure = jax.tree.structure(self.arguments, is_leaf=lambda one: isinstance(one, Leaf))
        return jax.tree.unflatten(structure, values)


def gspmd(case: Case) -> Case:
    """The same case for the older partitioner."""
    return replace(case, name=f"{case.name}, GSPMD", is_shardy=False)


def explicit(case: Case) -> Case:
    """The same case on a mesh whose axes are explicit."""
    return replace(case, name=f"{case.name}, explicit", is_explicit=True)


def always(function: Function) -> Callable[[Mesh], Function]:
    """A function that is the same for all meshes."""
    return lambda mesh: function


def mapped(
    function: Function,
    ins: Any,
    outs: Any,
    axes: frozenset[str] = frozenset(),
    is_checked: bool = True,
) -> Callable[[Mesh], Function]:
    """A function of shards as one of whole arrays; manual along `axes`, by default along all.

    Unless JAX checks which values differ between devices, gradients that the function takes are
    those of each device alone.
    """

    def build(mesh: Mesh) -> Function:
        named: dict[str, Any] = {"axis_names": axes} if axes else {}
        made: Function = jax.shard_map(
            function, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=is_checked, **named
        )
        return made

    return build


def leaf_of(path: Any, array: Any, spec: P) -> Leaf:
    """The leaf for an array of a model's parameters or of its optimizer's state, by its name."""
    names = [str(getattr(key, "key", getattr(key, "name", ""))) for key in path]
    kinds = {"scale": "scale", "bias": "bias", "mean": "bias", "var": "positive"}
    kind = kinds.get(names[-1] if names else "", "weight")
    if "nu" in names:
        kind = "positive"
    elif "mu" in names or "trace" in names:
        kind = "bias"
    return Leaf(tuple(array.shape), spec, kind, array.dtype, 5)


def leaves_of(tree: Any, spec_of: Callable[[str, tuple[int, ...]], P]) -> Any:
    """A tree of leaves for a tree of arrays, divided as `spec_of` says of a path and dims."""
    return jax.tree_util.tree_map_with_path(
        lambda path, array: leaf_of(
            path, array, spec_of(jax.tree_util.keystr(path), tuple(array.shape))
        ),
        tree,
    )
