"""Compiled modules as the compilers of TPUs and GPUs print them: kernels with estimates."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field

_HEAD = re.compile(r"^(?P<entry>ENTRY )?%(?P<name>[\w.\-]+) \(.*\{$")
_LINE = re.compile(
    r"^  (?:ROOT )?%(?P<name>[\w.\-]+) = (?P<shape>\(.*?\)|\S+) (?P<opcode>[\w\-]+)\((?P<rest>.*)$"
)
_ARRAY = re.compile(r"(pred|[a-z]+\d+\w*)\[([\d,]*)\]")
_NAME = re.compile(r"%([\w.\-]+)")
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_COSTS = re.compile(r'"exec_time_us":([\d.e+\-]+)[^}]*?"name":"([\w\-]*)"')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALLED = re.compile(
    r"(?:body|to_apply|calls|(?:true|false)_computation|(?:called|branch)_computations)="
    r"(\{[^}]*\}|%[\w.\-]+)"
)

# The attribute of a conditional that Tilewright guards a rewrite by.
_GUARD = "tilewright_guard="

# What does no work by itself.
_FREE = {
    "parameter",
    "constant",
    "bitcast",
    "tuple",
    "get-tuple-element",
    "after-all",
    "partition-id",
    "replica-id",
    "opt-barrier",
}
# Ends of the names of ops that begin and end a transfer; without an estimate, it goes on while kernels run.
_MOVED = ("-start", "-done")
_CALLS = {"while", "conditional", "call", "async-start"}


@dataclass
class Instruction:
    """A line of a computation."""

    opcode: str
    shape: str
    operands: list[str]
    # In the engine's unit; none if the engine does not say.
    cost: float | None
    called: list[str]
    trips: int
    is_guard: bool


@dataclass
class Module:
    """The computations of a module by name."""

    text: str
    computations: dict[str, dict[str, Instruction]] = field(default_factory=dict)
    entry: str = ""

    def __post_init__(self) -> None:
        current: dict[str, Instruction] = {}
        for line in self.text.splitlines():
            if head := _HEAD.match(line):
                current = self.computations.setdefault(head["name"], {})
                self.entry = head["name"] if head["entry"] else self.entry
            elif found := _LINE.match(line):
                current[found["name"]] = _instruction(found)

    def estimate(self) -> tuple[float, int, float, dict[str, int]]:
        """The cost of the entry, its kernels, its sweeps over large arrays, and the kernels without an
        estimate by opcode. The dearest branch of a conditional counts, the first one of a guard, which
        is seldom left."""
        largest = max(
            (_bytes(one.shape) for one in self.computations[self.entry].values()), default=0
        )
        return self._sum(self.entry, largest)

    def _sum(self, name: str, largest: int) -> tuple[float, int, float, dict[str, int]]:
        cost, kernels, sweeps, unknown = 0.0, 0, 0.0, Counter[str]()
        lines = self.computations[name]
        for one in lines.values():
            if one.opcode in _CALLS:
                inner = [self._sum(called, largest) for called in one.called]
                if not inner:
                    continue
                taken = inner[0] if one.is_guard else max(inner, key=lambda found: found[0])
                cost += one.trips * taken[0]
                kernels += one.trips * taken[1]
                sweeps += one.trips * taken[2]
                unknown.update(taken[3])
            elif one.opcode not in _FREE and (one.cost or not one.opcode.endswith(_MOVED)):
                kernels += 1
                if one.cost is None:
                    unknown[one.opcode] += 1
                cost += one.cost or 0.0
                read = {o: _bytes(lines[o].shape) for o in one.operands if o in lines}
                sizes = [*read.values(), *_sizes(one.shape)]
                sweeps += sum(size / largest for size in sizes if largest and size * 2 >= largest)
        return cost, kernels, sweeps, dict(unknown)


def _instruction(found: re.Match[str]) -> Instruction:
    operands, attributes = _split(found["rest"])
    called = " ".join(_CALLED.findall(attributes)) if found["opcode"] in _CALLS else ""
    trips = _TRIPS.search(attributes)
    return Instruction(
        found["opcode"],
        found["shape"],
        _NAME.findall(operands),
        _cost(attributes),
        _NAME.findall(called),
        int(trips[1]) if trips else 1,
        _GUARD in attributes,
    )


def _split(rest: str) -> tuple[str, str]:
    """The operands, and what stands after them."""
    depth = 1
    for at, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return rest[:at], rest[at:]
    return rest, ""


def _cost(attributes: str) -> float | None:
    """The cycles of a TPU; the microseconds of a GPU by its compiler's model of tiled kernels, which are
    millions of times too dear in the first one, or else by the first one."""
    if cycles := _CYCLES.search(attributes):
        return float(cycles[1])
    costs = _COSTS.findall(attributes)
    tiled = [cost for cost, model in costs if model == "indexing-cost-model"]
    return next(map(float, tiled + [cost for cost, _ in costs]), None)


def _sizes(shape: str) -> list[int]:
    return [_array_bytes(kind, dims) for kind, dims in _ARRAY.findall(shape)]


def _bytes(shape: str) -> int:
    return max(_sizes(shape), default=0)


def _array_bytes(kind: str, dims: str) -> int:
    bits = 8 if kind == "pred" else int(re.findall(r"\d+", kind)[0])
    return math.prod(int(dim) for dim in dims.split(",") if dim) * max(bits, 8) // 8
