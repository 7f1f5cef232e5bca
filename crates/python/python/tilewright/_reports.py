"""Reports: the fields of the command's JSON as attributes, and its text as ``str``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tilewright import _core


class Fields:
    """An object of the command's JSON, with its keys as attributes."""

    _nested: ClassVar[dict[str, type[Fields]]] = {}

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        for name, value in fields.items():
            setattr(self, name, _made(value, self._nested.get(name, Fields)))

    def to_dict(self) -> dict[str, Any]:
        """The fields as the command's JSON has them."""
        return self._fields

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields.items())
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fields) and self._fields == other._fields

    __hash__ = None  # type: ignore[assignment]


def _made(value: Any, kind: type[Fields]) -> Any:
    if isinstance(value, dict):
        return kind(value)
    if isinstance(value, list):
        return [_made(element, kind) for element in value]
    return value


class Report(Fields):
    """A report of the library. ``str(report)`` is what the command prints."""

    def __init__(self, text: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self._text = text

    @classmethod
    def of(cls, as_json: str, text: str) -> Any:
        """The report of a function of ``_core``."""
        return cls(text, json.loads(as_json))

    def __str__(self) -> str:
        return self._text


class Costs(Fields):
    """Modelled costs."""

    cycles: float
    vectors: int
    """Vectors loaded and stored."""
    realigned_vectors: int
    """Vectors taken apart and reassembled by reshapes and transposes."""
    bytes: int
    """Bytes loaded and stored, without padding."""
    padded_bytes: int
    flops: int


class InstructionCosts(Costs):
    """The costs of one instruction, with the computations that it calls."""

    name: str
    opcode: str
    meaning: str | None
    """Its effect in words, if it only moves or renames elements."""
    shape: str


class CostReport(Report):
    """The costs of a module on a target: ``tilewright cost --json``. A model, no measurement."""

    _nested = {"total": Costs, "instructions": InstructionCosts}
    module: str
    target: str
    total: Costs
    instructions: list[InstructionCosts]
    latency_cycles: float


class MemoryPeak(Fields):
    """When a module holds most."""

    padded_bytes: int
    bytes: int
    """The bytes of the elements alone."""
    argument_bytes: int
    instruction: str
    place: str


class ArrayReader(Fields):
    """An instruction that reads an array."""

    name: str
    opcode: str
    source: str | None
    """``file:line`` in what the user wrote, if that is known."""


class ArrayMemory(Fields):
    """An array in memory."""

    _nested = {"readers": ArrayReader}
    name: str
    opcode: str
    meaning: str | None
    shape: str
    bytes: int
    padded_bytes: int
    padding: float
    """The ratio of the two."""
    is_at_peak: bool
    is_argument: bool
    op_name: str
    source: str | None
    readers: list[ArrayReader]
    advice: str | None


class MemoryReport(Report):
    """The arrays that a module keeps in memory: ``tilewright cost --memory --json``. A model."""

    _nested = {"peak": MemoryPeak, "arrays": ArrayMemory}
    module: str
    target: str
    devices: int | None
    """Over which the module is divided; all bytes are those of one."""
    peak: MemoryPeak
    counted_whole: int
    """Arrays of a divided module that nothing tells how to divide."""
    arrays: list[ArrayMemory]
    """Those at the peak first, the largest first."""
    advice: list[str]


class PassSummary(Fields):
    """All runs of one pass."""

    name: str
    changes: int
    ms: float
    """Milliseconds."""


class Note(Fields):
    """A rewrite that was made, or left and why."""

    verdict: str
    """``rewritten`` or ``left``."""
    place: str
    op_name: str
    """JAX's name of the first instruction; empty if it has none."""
    source: str | None
    """``file:line`` in what the user wrote, if that is known."""
    text: str


class Traffic(Fields):
    """How much the devices of a module communicate."""

    rounds: int
    chain: int
    """The largest number of rounds that wait for each other."""
    bytes: int
    """Handed over by each device."""


class OptReport(Report):
    """The result of an optimisation: ``tilewright opt --stats --json``."""

    _nested = {
        "before": Costs,
        "after": Costs,
        "passes": PassSummary,
        "notes": Note,
        "traffic": Traffic,
    }
    before: Costs
    after: Costs
    peak_live_bytes: list[int]
    """Before and after."""
    memory_sweeps: list[int]
    """Before and after."""
    traffic: list[Traffic] | None
    """Before and after; ``None`` if the module is not divided over several devices."""
    passes: list[PassSummary]
    stopped: str
    """``fixpoint``, ``budget`` or ``stop-after``."""
    unchanged: bool
    notes: list[Note]
    left_out: list[Fields]
    explained: Fields | None
    """The rewrites of each layer, in an explanation."""
    caveat: str | None
    ratio_error: float
    """The factor within which nine in ten ratios of the engine were the modelled one."""

    def __init__(self, text: str, fields: dict[str, Any], explanation: str) -> None:
        super().__init__(text, fields)
        self.explanation = explanation
        """What was rewritten, what was left, and why: the text of ``--explain=all``
        without the layers."""


class Explanation(OptReport):
    """An optimisation, whose text is its explanation: ``tilewright opt --explain``."""

    def __str__(self) -> str:
        return self.explanation


class Profiled(Fields):
    """The time and bytes of one instruction."""

    name: str
    opcode: str
    shape: str
    count: int
    ms: float
    share: float
    """The fraction of the total time, from 0 to 1."""
    bytes: int


class Profile(Fields):
    """The time and bytes of each instruction, the slowest first."""

    _nested = {"instructions": Profiled}
    total_ms: float
    total_bytes: int
    total_count: int
    instructions: list[Profiled]


class GuardSummary(Fields):
    """How often the test of a guard held and failed."""

    name: str
    held: int
    failed: int


class RunReport(Report):
    """The measurements of a run: ``tilewright run --stats --json``."""

    _nested = {"profile": Profile, "guards": GuardSummary}
    backend: str
    """``interp`` or ``sim``; the former counts nothing of what follows."""
    wall_ms: float
    cycles: float | None
    hbm_read_bytes: int | None
    hbm_write_bytes: int | None
    workspace_bytes: int | None
    vmem_peak_bytes: int | None
    vector_ops: int | None
    realign_ops: int | None
    host_calls: int | None
    guards: list[GuardSummary]
    """Only if the module has some."""
    profile: Profile
    """Only if it was asked for."""


class OutputSummary(Fields):
    """The difference of one output between two modules."""

    index: int
    max_abs: float | None
    max_ulp: int
    at: list[int] | None
    expected: str | None
    actual: str | None
    device: int | None
    inputs: str | None
    seed: int | None
    max_relative: float | None
    largest_on: str | None
    excuse: str | None
    elements: int
    not_compared: int
    algebra: str | None


class CheckReport(Report):
    """Whether two modules agree: ``tilewright check --json``. It is true if they do."""

    _nested = {"outputs": OutputSummary}
    equal: bool
    outputs: list[OutputSummary]
    seeds: int
    """The number of inputs on which both were evaluated."""
    first_difference: Fields | None
    recorded: list[Fields] | None

    def __bool__(self) -> bool:
        return self.equal


class Change(Fields):
    """One thing that differs."""

    what: str
    """``op``, ``operand``, ``attribute``, ``shape`` and the like."""
    name: str
    """Of an attribute its name, of an operand its number; else empty."""
    before: str | None
    after: str | None
    same_value: bool
    """Whether another instruction takes the place of one that computes the same."""


class NamedInstruction(Fields):
    """An instruction of one of two modules."""

    name: str
    computation: str
    text: str
    line: int | None
    """The line of ``str(module)``."""
    same_as: str | None
    """Of an instruction that one module has alone: the one of the other module that computes the
    same value."""


class ChangedInstruction(Fields):
    """Two instructions that belong together and differ."""

    _nested = {"a": NamedInstruction, "b": NamedInstruction, "changes": Change}
    a: NamedInstruction
    b: NamedInstruction
    changes: list[Change]


class ComputationChanges(Fields):
    """What differs in a computation."""

    _nested = {
        "changes": Change,
        "changed": ChangedInstruction,
        "removed": NamedInstruction,
        "added": NamedInstruction,
    }
    a: str | None
    """Its name in the first module; ``None`` if it was added."""
    b: str | None
    """Its name in the second module; ``None`` if it was removed."""
    changes: list[Change]
    unchanged: int
    """The number of instructions that do not differ."""
    changed: list[ChangedInstruction]
    removed: list[NamedInstruction]
    added: list[NamedInstruction]


class Counts(Fields):
    """Numbers of instructions."""

    unchanged: int
    changed: int
    added: int
    removed: int
    moved: int
    """Those that stand in another computation than before."""


class Difference(Report):
    """In what two modules differ as graphs: ``tilewright diff --json``."""

    _nested = {
        "counts": Counts,
        "header": Change,
        "computations": ComputationChanges,
        "moved": ChangedInstruction,
    }
    same: bool
    """Whether nothing differs but names and order."""
    a: Fields
    b: Fields
    counts: Counts
    header: list[Change]
    computations: list[ComputationChanges]
    """Those that differ: the entry first, then callers before callees."""
    moved: list[ChangedInstruction]
    """Instructions that stand in another computation than before."""

    def __init__(self, text: str, fields: dict[str, Any], html: str) -> None:
        super().__init__(text, fields)
        self.html = html
        """A page that shows both modules side by side: ``tilewright diff --html``."""


class Kernels(Fields):
    """The kernels of an instruction, or why it has none."""

    name: str
    kernels: list[str]
    why_not: str | None


class Plan(Fields):
    """How one reduce walks over its array."""

    name: str
    shape: str
    axes: list[int]
    normalized: list[int]
    kinds: str
    order: str
    steps: list[Fields]
    strategy: str
    workspace_bytes: int | None


class LowerReport(Report):
    """The kernels of a module, or the plans of its reduces: ``tilewright lower --json``."""

    _nested = {"instructions": Kernels, "plans": Plan}
    instructions: list[Kernels]
    plans: list[Plan]

    def __iter__(self) -> Iterator[Fields]:
        return iter(self.plans or self.instructions)

    def __len__(self) -> int:
        return len(self.plans or self.instructions)


@dataclass(frozen=True)
class Optimized:
    """An optimised module, and what was done."""

    module: _core.Module
    report: OptReport

    @property
    def explanation(self) -> str:
        """What was rewritten, what was left, and why."""
        return self.report.explanation


@dataclass(frozen=True)
class Ran:
    """The results of a run. ``str`` is the text of ``tilewright run --stats``."""

    output: Any
    """The value of the root: a NumPy array, a tuple of values, or ``None`` for a token."""
    outfeed: tuple[Any, ...]
    """The values of outfeed instructions, in order."""
    report: RunReport

    def __str__(self) -> str:
        return str(self.report)


@dataclass(frozen=True)
class RuleTrial:
    """A trial of a rule on random modules."""

    tried: int
    """The number of modules that it was tried on; 0 says nothing about the rule."""
    wrong: tuple[str, str] | None
    """The text of the first module whose outputs it changed too much, before and after."""
    caveats: tuple[str, ...] = ()
    """Why the default pipeline may not make or keep its rewrites."""

    def __bool__(self) -> bool:
        return self.tried > 0 and self.wrong is None
