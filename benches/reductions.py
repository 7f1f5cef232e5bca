"""Random reductions, as `calibrate.py` measures them and `check_forms.py` checks what it chose."""

from __future__ import annotations

import math
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import numpy as np

import xla

# Where the ranges of a kind's lengths begin.
INNERMOST = (2, 8, 32, 128)
LONGEST = (2, 17, 33, 1025)
SIZES = (
    2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 17, 20, 24, 28, 31, 32, 49, 56, 64, 80, 100, 112, 127, 128, 196,
    224, 256, 320, 384, 512, 768, 1000, 1024, 3000, 4096, 16384, 65536, 262144,
)
FEWEST, MOST, MOST_LARGE = 1 << 19, 1 << 22, 1 << 24
# Folding, type.
FOLDINGS = (
    ("sum", "f32"),
    ("sum", "bf16"),
    ("sum", "f16"),
    ("sum", "f64"),
    ("sum", "s32"),
    ("product", "f32"),
    ("extremum", "f32"),
    ("extremum", "bf16"),
    ("extremum", "s32"),
    ("extremum", "u8"),
    ("logical", "pred"),
    ("place", "f32"),
    ("place", "f64"),
    ("place", "bf16"),
    ("place", "s32"),
)
OPS = {"sum": "add", "product": "multiply", "extremum": "maximum", "logical": "or"}
INITS = {"sum": "0", "product": "1", "logical": "false"}


@dataclass(frozen=True)
class Shape:
    """Dims, and which of them are reduced."""

    dims: tuple[int, ...]
    reduced: tuple[bool, ...]

    @property
    def axes(self) -> list[tuple[int, bool]]:
        """Neighbouring dims that are all kept or all reduced, as one."""
        axes: list[tuple[int, bool]] = []
        for size, reduced in zip(self.dims, self.reduced):
            if axes and axes[-1][1] == reduced:
                axes[-1] = (axes[-1][0] * size, reduced)
            else:
                axes.append((size, reduced))
        return axes

    @property
    def walk(self) -> str:
        """How the array is walked."""
        if all(self.reduced):
            return "whole"
        several = sum(reduced for _, reduced in self.axes) > 1
        rows = "rows" if self.axes[-1][1] else "columns"
        return f"mixed-{rows}" if several else rows

    @property
    def nested(self) -> bool:
        """Whether neighbouring dims are reduced."""
        return any(pair == (True, True) for pair in zip(self.reduced, self.reduced[1:]))

    @property
    def lengths(self) -> tuple[int, int]:
        """The beginnings of the ranges of the innermost axis and of the longest reduced one."""
        longest = max(size for size, reduced in self.axes if reduced)
        return beginning(INNERMOST, self.axes[-1][0]), beginning(LONGEST, longest)

    @property
    def key(self) -> tuple[str, bool, int, int]:
        """What a cell of the table says of the shape."""
        return self.walk, self.nested, *self.lengths


def beginning(starts: Sequence[int], length: int) -> int:
    """The greatest start that is not beyond a length."""
    return max(start for start in starts if start <= length)


def shapes(draw: random.Random, fewest: int = FEWEST, most: int = MOST) -> Iterator[Shape]:
    """Random shapes."""
    while True:
        rank = draw.choice((2, 2, 3, 3, 4, 5))
        dims = [draw.choice(SIZES) for _ in range(rank)]
        reduced = tuple(draw.random() < 0.5 for _ in dims)
        if any(reduced) and fewest <= math.prod(dims) <= most:
            yield Shape(tuple(dims), reduced)


def drawn(count: int, draw: random.Random) -> dict[tuple[str, bool, int, int], list[Shape]]:
    """So many shapes of each kind that turns up."""
    kinds: dict[tuple[str, bool, int, int], list[Shape]] = defaultdict(list)
    for _, shape in zip(range(60_000), shapes(draw)):
        if len(kinds[shape.key]) < count:
            kinds[shape.key].append(shape)
    return {key: found for key, found in sorted(kinds.items()) if len(found) == count}


def listed(numbers: Sequence[int]) -> str:
    """Numbers with commas."""
    return ",".join(map(str, numbers))


PLACE = """by {{
  a = {t}[] parameter(0)
  i = s32[] parameter(1)
  b = {t}[] parameter(2)
  j = s32[] parameter(3)
  beyond = pred[] compare(a, b), direction=GT
  is_nan = pred[] compare(a, a), direction=NE
  kept = pred[] or(beyond, is_nan)
  ties = pred[] compare(a, b), direction=EQ
  nearer = pred[] compare(i, j), direction=LT
  first = pred[] and(ties, nearer)
  index_kept = pred[] or(kept, first)
  value = {t}[] select(kept, a, b)
  index = s32[] select(index_kept, i, j)
  ROOT pair = ({t}[], s32[]) tuple(value, index)
}}
"""


def produced(element_type: str, dims: Sequence[int], producer: str) -> tuple[str, str]:
    """The type of the array `x`, and the instructions that compute `y` from it."""
    t, of = element_type, f"{element_type}[{listed(dims)}]"
    match producer:
        case "":
            return t, ""
        case "square":
            return t, f"  y = {of} multiply(x, x)\n"
        case "affine":
            return t, (
                f"  two = {t}[] constant(2)\n  twos = {of} broadcast(two), dimensions={{}}\n"
                f"  twice = {of} multiply(x, twos)\n  y = {of} add(twice, twos)\n"
            )
        case "centred":
            return t, (
                f"  row = {t}[{dims[-1]}] parameter(1)\n"
                f"  rows = {of} broadcast(row), dimensions={{{len(dims) - 1}}}\n"
                f"  y = {of} subtract(x, rows)\n"
            )
        case "exp":
            return t, f"  y = {of} exponential(x)\n"
        case "compared":
            return "f32", (
                f"  half = f32[] constant(0.5)\n"
                f"  halves = f32[{listed(dims)}] broadcast(half), dimensions={{}}\n"
                f"  y = {of} compare(x, halves), direction=GT\n"
            )
        case narrow:
            return narrow, f"  y = {of} convert(x)\n"


PRODUCERS = {
    "f32": ("square", "affine", "centred", "exp", "bf16"),
    "bf16": ("square", "affine", "centred"),
    "f16": ("square", "affine", "centred"),
    "f64": ("square", "affine", "centred", "exp"),
    "u8": ("square", "affine"),
    "s32": ("square", "affine", "s8", "pred"),
    "pred": ("compared",),
}


def text_of(folding: str, element_type: str, shape: Shape, producer: str) -> str:
    """A module that reduces what a producer makes of an array."""
    t, dims = element_type, listed(shape.dims)
    kept = listed([size for size, reduced in zip(shape.dims, shape.reduced) if not reduced])
    along = listed([dim for dim, reduced in enumerate(shape.reduced) if reduced])
    given, made = produced(t, shape.dims, producer)
    reads = "y" if producer else "x"
    least = {"s32": "-2147483648", "u8": "0"}.get(t, "-inf")
    init = INITS.get(folding, least)
    head = "HloModule reduction\n\n"
    body = f"ENTRY main {{\n  x = {given}[{dims}] parameter(0)\n{made}  init = {t}[] constant({init})\n"
    if folding == "place":
        dim = along.split(",")[0]
        by = PLACE.format(t=t)
        if t == "s32":
            by = re.sub(r"  is_nan.*\n", "", by).replace("or(beyond, is_nan)", "or(beyond, beyond)")
        return (
            f"{head}{by}\n{body}  places = s32[{dims}] iota(), iota_dimension={dim}\n"
            f"  none = s32[] constant(0)\n  pair = ({t}[{kept}], s32[{kept}]) reduce({reads}, places, init, "
            f"none), dimensions={{{along}}}, to_apply=by\n"
            f"  ROOT place = s32[{kept}] get-tuple-element(pair), index=1\n}}\n"
        )
    by = (
        f"by {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n"
        f"  ROOT c = {t}[] {OPS[folding]}(a, b)\n}}\n"
    )
    return (
        f"{head}{by}\n{body}  ROOT r = {t}[{kept}] reduce({reads}, init), dimensions={{{along}}}, "
        f"to_apply=by\n}}\n"
    )


VALUES = np.random.default_rng(1).standard_normal(MOST_LARGE, dtype=np.float32)


def values(program: xla.Executable, folding: str) -> list[np.ndarray]:
    """Inputs of both signs, with ties among integers."""
    made = []
    for shape, dtype in zip(program.input_shapes, program.input_types):
        flat = VALUES[: math.prod(shape)]
        if dtype == np.bool_:
            array = flat > 2.5
        else:
            flat = 1 + flat / 4096 if folding == "product" else flat
            array = (flat * 25 if np.issubdtype(dtype, np.integer) else flat).astype(dtype)
        made.append(array.reshape(shape))
    return made


def cell_of(
    folding: str, element_type: str, source: str, key: tuple[str, bool, int, int], *flags: str
) -> str:
    """The beginning of a cell's line."""
    walk, nested, innermost, longest = key
    words = " ".join(filter(None, (walk, "nested" * nested, *flags)))
    return f"{folding} {element_type} {source} {words} {innermost} {longest}"


@dataclass(frozen=True)
class Drawn:
    """A program, its cell and its producer."""

    folding: str
    element_type: str
    source: str
    shape: Shape
    producer: str

    @property
    def text(self) -> str:
        """The module."""
        return text_of(self.folding, self.element_type, self.shape, self.producer)

    @property
    def cell(self) -> str:
        """The beginning of its cell."""
        return cell_of(self.folding, self.element_type, self.source, self.shape.key)


def programs_of(
    folding: str, element_type: str, source: str, found: Sequence[Shape], draw: random.Random
) -> list[Drawn]:
    """Programs of some shapes."""
    producers = PRODUCERS[element_type] if source == "computed" else ("",)
    return [
        Drawn(folding, element_type, source, shape, draw.choice(producers))
        for shape in found
    ]


def fits(folding: str, shape: Shape) -> bool:
    """Whether a folding can be along the reduced dims of a shape."""
    return folding != "place" or sum(shape.reduced) == 1
