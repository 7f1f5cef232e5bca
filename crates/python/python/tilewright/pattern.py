"""Patterns of expressions, written as the expressions that they match.

``multiply(any("x"), constant(1))`` matches a product with one, in either order. ``any`` and
``constant`` give names to values; ``.named("r")`` names an instruction. The same name in two places
must be the same value.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright._core import Pattern


def any(name: str) -> Pattern:
    """Matches any value, and names it."""
    return Pattern.any(name)


def constant(value: float | str | None = None, name: str | None = None) -> Pattern:
    """Matches a constant whose elements are all ``value``; any constant without one.

    Args:
        value: the number, or a name for any constant.
        name: a name for the constant.
    """
    if isinstance(value, str):
        return Pattern.constant(value, None)
    return Pattern.constant(name, value)


def op(opcode: str, *operands: Pattern) -> Pattern:
    """Matches an instruction of this op, named as in HLO text, whose operands match. The operands
    of a commutative op may match in either order.

    Raises:
        UsageError: there is no such op.
    """
    return Pattern.op(opcode, list(operands))


def _of_one(opcode: str) -> Callable[[Pattern], Pattern]:
    def matches(operand: Pattern) -> Pattern:
        return Pattern.op(opcode, [operand])

    matches.__doc__ = f"Matches ``{opcode}`` of a value."
    return matches


def _of_two(opcode: str) -> Callable[[Pattern, Pattern], Pattern]:
    def matches(a: Pattern, b: Pattern) -> Pattern:
        return Pattern.op(opcode, [a, b])

    matches.__doc__ = f"Matches ``{opcode}`` of two values; in either order, if it is commutative."
    return matches


abs = _of_one("abs")
broadcast = _of_one("broadcast")
convert = _of_one("convert")
copy = _of_one("copy")
cos = _of_one("cosine")
exp = _of_one("exponential")
log = _of_one("log")
logistic = _of_one("logistic")
negate = _of_one("negate")
not_ = _of_one("not")
reshape = _of_one("reshape")
reverse = _of_one("reverse")
rsqrt = _of_one("rsqrt")
sin = _of_one("sine")
slice = _of_one("slice")
sqrt = _of_one("sqrt")
tanh = _of_one("tanh")
transpose = _of_one("transpose")

add = _of_two("add")
and_ = _of_two("and")
compare = _of_two("compare")
divide = _of_two("divide")
dot = _of_two("dot")
maximum = _of_two("maximum")
minimum = _of_two("minimum")
multiply = _of_two("multiply")
or_ = _of_two("or")
power = _of_two("power")
reduce = _of_two("reduce")
subtract = _of_two("subtract")
xor = _of_two("xor")


def select(which: Pattern, on_true: Pattern, on_false: Pattern) -> Pattern:
    """Matches ``select`` of a truth value and the two values to choose from."""
    return Pattern.op("select", [which, on_true, on_false])
