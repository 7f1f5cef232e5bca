"""What a compiled program communicates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import tilewright as tw

COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
BYTES = {"pred": 1, "bf16": 2, "f16": 2, "f64": 8, "s64": 8, "u64": 8, "c64": 8, "c128": 16}
# A program may exchange this much more and is not worse.
MORE = 1.1
# The attribute of a conditional whose second branch is seldom taken.
GUARD = "tilewright_guard"


@dataclass(frozen=True)
class Traffic:
    """What one device exchanges in one run; a loop counts as often as it turns."""

    rounds: int = 0
    chain: int = 0
    size: int = 0
    # The bytes of the largest collective.
    largest: int = 0
    # The bytes of the largest array among a device's parameters and results.
    shard: int = 0

    def worse_than(self, other: Traffic) -> list[str]:
        """What is worse than in another program: more rounds, a longer chain, much more to exchange
        in as many rounds, or the exchange of an array as large as the largest shard, where the
        other one has none so large."""
        found = []
        if self.rounds > other.rounds:
            found.append("rounds")
        if self.chain > other.chain:
            found.append("chain")
        if self.rounds >= other.rounds and self.size > MORE * other.size:
            found.append("bytes")
        if self.largest >= other.shard > other.largest:
            found.append("a whole shard")
        return found


def bytes_of(shape: tw.Shape) -> int:
    """The bytes of an array or of a tuple of arrays."""
    if shape.is_tuple:
        return sum(bytes_of(element) for element in shape.elements)
    return (shape.size or 0) * BYTES.get(str(shape.element_type), 4)


def arrays(shape: tw.Shape) -> Iterator[tw.Shape]:
    """The arrays in a shape."""
    if shape.is_tuple:
        for element in shape.elements:
            yield from arrays(element)
    else:
        yield shape


def trips(text: str) -> dict[str, int]:
    """How often the loops of a compiled program turn, by name; loops that XLA does not know are
    missing."""
    line = r'^\s*(?:ROOT )?%?(\S+) = .* while\(.*"known_trip_count":\{"n":"(\d+)"'
    return {name: int(turns) for name, turns in re.findall(line, text, re.MULTILINE)}


def exchanged(instruction: tw.Instruction) -> int:
    """The bytes of a collective: of its operands, or of its result if that is larger, as for an
    all-gather."""
    operands = sum(bytes_of(operand.shape) for operand in instruction.operands)
    if instruction.opcode.endswith("-start"):
        # The result holds the operands, too.
        return max(operands, bytes_of(instruction.shape) - operands)
    return max(operands, bytes_of(instruction.shape))


class Counter:
    """Counts what computations communicate; a loop of unknown length counts as one turn."""

    def __init__(self, turns: dict[str, int]) -> None:
        self.turns = turns
        self.known: dict[tw.Computation, Traffic] = {}

    def computation(self, computation: tw.Computation) -> Traffic:
        """What a run of a computation communicates."""
        if computation in self.known:
            return self.known[computation]
        all_of_it = Traffic()
        chains: dict[tw.Instruction, int] = {}
        for instruction in computation:
            one = self.instruction(instruction)
            before = max(map(chains.__getitem__, instruction.operands), default=0)
            chains[instruction] = before + one.chain
            all_of_it = after(all_of_it, one)
        chain = max(chains.values(), default=0)
        result = Traffic(all_of_it.rounds, chain, all_of_it.size, all_of_it.largest)
        self.known[computation] = result
        return result

    def instruction(self, instruction: tw.Instruction) -> Traffic:
        """What an instruction communicates, with the computations that it calls."""
        opcode = instruction.opcode
        if opcode.removesuffix("-start") in COLLECTIVES:
            size = exchanged(instruction)
            return Traffic(1, 1, size, size)
        called = [self.computation(one) for one in instruction.called_computations]
        if opcode == "conditional" and GUARD in instruction.frontend_attributes:
            return called[0]
        if opcode == "conditional":
            # One branch runs: the one that communicates most.
            return max(called, key=lambda one: (one.rounds, one.size), default=Traffic())
        times = self.turns.get(instruction.name, 1)
        found = Traffic()
        for one in called:
            found = after(found, one)
        chain = sum(one.chain for one in called)
        return Traffic(times * found.rounds, times * chain, times * found.size, found.largest)


def after(first: Traffic, second: Traffic) -> Traffic:
    """What two together communicate, but for the chain."""
    return Traffic(
        first.rounds + second.rounds,
        0,
        first.size + second.size,
        max(first.largest, second.largest),
    )


def traffic(text: str) -> Traffic:
    """What a compiled program communicates."""
    module = tw.Module.from_text(text)
    found = Counter(trips(text)).computation(module.entry)
    shapes = [one.shape for one in (*module.entry.parameters, module.root)]
    shard = max((bytes_of(one) for shape in shapes for one in arrays(shape)), default=0)
    return Traffic(found.rounds, found.chain, found.size, found.largest, shard)


def geometric_mean(ratios: list[float]) -> float:
    """Of no ratios, 1."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0
