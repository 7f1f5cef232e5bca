"""Random values that several reductions read, for `calibrate.py` and `check_forms.py`.

XLA:CPU stores such a value, unless each reduction computes a copy of its own (the form `copied`). What
that costs depends on the parts of the computation, the dearest of which gives a value its kind.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from dataclasses import dataclass

from reductions import FEWEST, INNERMOST, LONGEST, MOST_LARGE, Shape, beginning, cell_of, listed, shapes

# A value is of the last of these kinds that it has a part of: draws of a kind have parts of those before.
PARTS = (
    "shared", "shared-arrays", "shared-scalar", "shared-row", "shared-column", "shared-narrow",
    "shared-rounded", "shared-function", "shared-choice",
)
# How likely a value has a part of an earlier kind.
LIKELY = 0.3
# Values of at least so many elements are large.
LARGE = 1 << 23
# So many programs of each kind are drawn; fewer than so many that have copies say nothing. Their mean must be
# less than so much of the time without copies.
DRAWN, FEWEST_COPIES, MOST_OF_TIME = 12, 4, 0.97
# The operands of a broadcast have fewer elements than the array, by so much.
SMALL_PART = 16
FUNCTIONS = ("exponential", "sqrt", "tanh", "log")


def sizes(large: bool) -> tuple[int, int]:
    """The fewest and the most elements of large values, or of others."""
    return (LARGE, MOST_LARGE) if large else (FEWEST, LARGE - 1)


@dataclass(frozen=True)
class Shared:
    """A program in which several sums read a value."""

    shape: Shape
    part: str
    several: bool
    text: str
    folding: str = "sum"

    @property
    def cell(self) -> str:
        """The beginning of its cell: rows are those of the innermost dim, whatever else is reduced."""
        walk = "rows" if self.shape.reduced[-1] else "columns"
        key = walk, False, beginning(INNERMOST, self.shape.dims[-1]), LONGEST[0]
        flags = "large" * (math.prod(self.shape.dims) >= LARGE), "several" * self.several
        return cell_of("sum", "f32", self.part, key, *flags)


class Writer:
    """The instructions of a program's entry."""

    def __init__(self, shape: Shape, draw: random.Random) -> None:
        self.shape, self.draw = shape, draw
        self.of = f"f32[{listed(shape.dims)}]"
        self.lines: list[str] = []
        self.parameters = 0

    def write(self, shape: str, expression: str) -> str:
        """Adds an instruction; returns its name."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {shape} {expression}\n")
        return name

    def parameter(self, shape: str) -> str:
        """Adds a parameter."""
        self.parameters += 1
        return self.write(shape, f"parameter({self.parameters - 1})")

    def elementwise(self, opcode: str, *operands: str) -> str:
        """Adds an elementwise op."""
        return self.write(self.of, f"{opcode}({', '.join(operands)})")

    def spread(self, operand: str, dims: list[int]) -> str:
        """Adds a broadcast of an operand that has these dims."""
        return self.write(self.of, f"broadcast({operand}), dimensions={{{listed(dims)}}}")

    def sum(self, value: str) -> str:
        """Adds a sum along the reduced dims."""
        init = self.write("f32[]", "constant(0)")
        reduced = [dim for dim, is_reduced in enumerate(self.shape.reduced) if is_reduced]
        return self.write(
            f"f32[{listed([self.shape.dims[dim] for dim in self.kept])}]",
            f"reduce({value}, {init}), dimensions={{{listed(reduced)}}}, to_apply=add",
        )

    @property
    def kept(self) -> list[int]:
        """The dims that are not reduced."""
        return [dim for dim, is_reduced in enumerate(self.shape.reduced) if not is_reduced]

    def value(self, kind: str) -> str | None:
        """Adds a value of a kind; `None` if the shape has no room for it."""
        earlier = PARTS[1 : PARTS.index(kind)]
        parts = [part for part in earlier if self.draw.random() < LIKELY]
        parts.append(kind)
        value = self.given("shared-rounded" in parts, "shared-narrow" in parts)
        for part in parts:
            changed = self.changed(value, part)
            if changed is None and part == kind:
                return None
            value = changed or value
        return value

    def given(self, rounded: bool, narrow: bool) -> str:
        """Adds the array that a value is computed from, in f32."""
        if not rounded and not narrow:
            return self.parameter(self.of)
        of = self.of.replace("f32", "bf16")
        array = self.parameter(of)
        if rounded:
            array = self.write(of, f"{self.draw.choice(('multiply', 'add'))}({array}, {array})")
        return self.elementwise("convert", array)

    def changed(self, value: str, part: str) -> str | None:
        """Adds a part to a value; `None` if the shape has no room for it."""
        opcode = self.draw.choice(("multiply", "subtract"))
        match part:
            case "shared":
                return self.elementwise("multiply", value, self.elementwise("abs", value))
            case "shared-arrays":
                return self.elementwise(opcode, value, self.parameter(self.of))
            case "shared-scalar":
                return self.elementwise(opcode, value, self.spread(self.parameter("f32[]"), []))
            case "shared-row" | "shared-column":
                small = self.small(part == "shared-row", value)
                return small and self.elementwise(opcode, value, small)
            case "shared-function":
                return self.elementwise(self.draw.choice(FUNCTIONS), self.elementwise("abs", value))
            case "shared-choice":
                negative = self.elementwise("negate", value)
                pred = self.of.replace("f32", "pred")
                beyond = self.write(pred, f"compare({value}, {negative}), direction=GT")
                return self.elementwise("select", beyond, value, negative)
        return value

    def small(self, has_minor: bool, x: str) -> str | None:
        """Adds the broadcast of a parameter, or of the sum of `x`, that has the innermost dim, or has not."""
        dims, last = self.shape.dims, len(self.shape.dims) - 1
        kept = self.kept
        if kept and (last in kept) == has_minor and self.draw.random() < 0.5:
            return self.spread(self.sum(x), kept)
        outer = [dim for dim in range(last) if self.draw.random() < 0.5]
        taken = [*outer, last] if has_minor else [*outer]
        while math.prod(dims[dim] for dim in taken) * SMALL_PART > math.prod(dims):
            if not outer:
                return None
            taken.remove(outer.pop())
        if not taken:
            return None
        return self.spread(self.parameter(f"f32[{listed([dims[dim] for dim in taken])}]"), taken)


def drawn_copies(part: str, draw: random.Random) -> dict[str, list[Shared]]:
    """Programs with a part, by cell."""
    found: dict[str, list[Shared]] = defaultdict(list)
    for large in (False, True):
        for _, shape in zip(range(2000), shapes(draw, *sizes(large))):
            program = shared(part, shape, draw)
            if program is not None and len(found[program.cell]) < DRAWN:
                found[program.cell].append(program)
    return {cell: programs for cell, programs in sorted(found.items()) if len(programs) == DRAWN}


def shared(part: str, shape: Shape, draw: random.Random) -> Shared | None:
    """A program in which sums read a value with a part."""
    writer = Writer(shape, draw)
    value = writer.value(part)
    if value is None:
        return None
    readers = draw.choice(("plain square", "square out", "product square", "plain product out"))
    other = writer.parameter(writer.of) if "product" in readers or "out" in readers else ""
    results = []
    for reader in readers.split():
        match reader:
            case "plain":
                results.append(writer.sum(value))
            case "square":
                results.append(writer.sum(writer.elementwise("multiply", value, value)))
            case "product":
                results.append(writer.sum(writer.elementwise("multiply", value, other)))
            case "out":
                results.append(writer.elementwise("multiply", value, other))
    shapes = [next(line.split()[2] for line in writer.lines if line.split()[0] == one) for one in results]
    text = (
        "HloModule shared\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT c = f32[] add(a, b)\n}\n\nENTRY main {\n" + "".join(writer.lines) +
        f"  ROOT all = ({', '.join(shapes)}) tuple({', '.join(results)})\n}}\n"
    )
    several = sum(reader != "out" for reader in readers.split()) > 1
    return Shared(shape, part, several, text)
