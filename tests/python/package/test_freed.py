"""Rules and patterns are freed, also if their functions refer to them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
import tilewright as tw
from tilewright import pattern as p

TEXT = """HloModule m

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] negate(x)
  ROOT z = f32[4] exponential(y)
}
"""


class Cycle:
    """What a function keeps: the function is freed with it."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def replace(self, found: tw.Match, new: tw.Replacement) -> tw.Instruction:
        return found["x"]

    def holds(self, found: tw.Match) -> bool:
        return True

    def matches(self, instruction: tw.Instruction) -> bool:
        return True

    def say(self, found: tw.Match) -> None:
        return None

    def numerics_of(self, found: tw.Match) -> str:
        return "exact"


def rule(pattern: tw.Pattern, replace: object = None, **options: object) -> tw.Rule:
    replace = replace or (lambda found, new: found["x"])
    return tw.Rule("freed", pattern, replace, numerics="exact", always=True, **options)


def negation() -> tw.Pattern:
    return p.negate(p.any("x"))


MAKERS: dict[str, Callable[[Cycle], object]] = {
    "replace": lambda cycle: rule(negation(), cycle.replace),
    "when": lambda cycle: rule(negation(), when=[("hold", cycle.holds)]),
    "say": lambda cycle: rule(negation(), say=cycle.say),
    "numerics_of": lambda cycle: rule(negation(), numerics_of=cycle.numerics_of),
    "pattern": lambda cycle: negation().when("match", cycle.matches),
    "named pattern": lambda cycle: negation().when("match", cycle.matches).named("y"),
    "operand": lambda cycle: p.exp(negation().when("match", cycle.matches)),
    "rule of pattern": lambda cycle: rule(negation().when("match", cycle.matches)),
    "set": lambda cycle: tw.RuleSet("freed", [rule(negation(), cycle.replace)]),
    "rule of set": lambda cycle: tw.RuleSet("freed", [rule(negation(), cycle.replace)]).rules[0],
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_cycle_is_freed(make: Callable[[Cycle], object]) -> None:
    cycle = Cycle()
    made = make(cycle)
    cycle.kept.append(made)
    if isinstance(made, tw.Rule | tw.RuleSet):
        tw.optimize(TEXT, passes=[made])
    freed = weakref.ref(cycle)
    del cycle
    gc.collect()
    # What was made keeps its functions.
    assert freed() is not None
    del made
    gc.collect()
    assert freed() is None


def test_functions_that_are_shared_stay() -> None:
    cycle = Cycle()
    negate = negation().when("match", cycle.matches)
    rules = tw.RuleSet("both", [rule(negate, cycle.replace), rule(p.exp(negate))])
    cycle.kept += [negate, rules, rules.rules]
    freed = weakref.ref(cycle)
    first = rules.rules[0]
    del cycle, negate, rules
    for _ in range(3):
        gc.collect()
        done = tw.optimize(TEXT, passes=[first, "dce"])
        assert [each.opcode for each in done.module.entry] == ["parameter", "exponential"]
    assert freed() is not None
    del first
    gc.collect()
    assert freed() is None


def test_the_collector_runs_within_a_rule() -> None:
    def replace(found: tw.Match, new: tw.Replacement) -> tw.Instruction:
        nonlocal calls
        calls += 1
        gc.collect()
        return found["x"]

    calls = 0
    for _ in range(3):
        done = tw.optimize(TEXT, passes=[rule(negation(), replace), "dce"])
        assert [each.opcode for each in done.module.entry] == ["parameter", "exponential"]
    assert calls >= 3


def test_without_a_cycle_nothing_waits_for_the_collector() -> None:
    gc.disable()
    try:
        cycle = Cycle()
        made = rule(negation().when("match", cycle.matches), cycle.replace, say=cycle.say)
        freed = weakref.ref(cycle)
        del cycle, made
        assert freed() is None
    finally:
        gc.enable()
