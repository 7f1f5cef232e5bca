"""Modules built op by op, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright as tw

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)).astype(np.float32)
Y = RNG.normal(size=(4, 5)).astype(np.float32)


def test_elementwise() -> None:
    b = tw.Builder("elementwise")
    x, y = b.parameter("x", "f32[4,5]"), b.parameter("y", tw.Shape("f32[4,5]"))
    assert (x.name, x.opcode, str(x.shape)) == ("x", "parameter", "f32[4,5]")
    less = b.compare("LT", x, y)
    chosen = b.select(less, b.unary("exponential", x), b.binary("multiply", x, y))
    module = b.finish(b.convert(chosen, "f64"))
    assert module.name == "elementwise"
    expected = np.where(X < Y, np.exp(X), X * Y)
    result = module(X, Y)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_shaping() -> None:
    b = tw.Builder()
    x = b.parameter("x", "f32[4,5]")
    row = b.constant(np.arange(5, dtype=np.float32))
    sums = b.binary("add", x, b.broadcast(row, [4, 5], [1]))
    flat = b.reshape(b.transpose(sums, [1, 0]), [20])
    scalar = b.broadcast(b.constant(2.0, "f32"), [20])
    module = b.finish(b.tuple([flat, scalar, b.op("iota", [], "iota_dimension=0", shape="s32[3]")]))
    flat, twos, counts = module(X)
    np.testing.assert_allclose(flat, (X + np.arange(5, dtype=np.float32)).T.reshape(20))
    np.testing.assert_array_equal(twos, np.full(20, 2, np.float32))
    np.testing.assert_array_equal(counts, [0, 1, 2])


@pytest.mark.parametrize(
    ("monoid", "expected"),
    [
        ("add", X.sum(axis=1)),
        ("multiply", X.prod(axis=1)),
        ("maximum", X.max(axis=1)),
        ("minimum", X.min(axis=1)),
    ],
)
def test_reductions(monoid: str, expected: np.ndarray) -> None:
    b = tw.Builder()
    x = b.parameter("x", "f32[4,5]")
    module = b.finish(b.reduce(x, monoid, [1]))
    np.testing.assert_allclose(module(X), expected, rtol=1e-5)


def test_a_reduction_begins_with_its_init() -> None:
    b = tw.Builder()
    x = b.parameter("x", "s32[3]")
    module = b.finish(b.reduce(x, "add", [0], b.constant(100, "s32")))
    assert module(np.array([1, 2, 3], np.int32)) == 106


def test_dots() -> None:
    b = tw.Builder()
    x, y = b.parameter("x", "f32[4,5]"), b.parameter("y", "f32[4,5]")
    plain = b.dot(x, b.transpose(y, [1, 0]))
    summed = b.dot(x, y, lhs_contracting=[0], rhs_contracting=[0])
    batched = b.dot(
        x,
        y,
        lhs_contracting=[1],
        rhs_contracting=[1],
        lhs_batch=[0],
        rhs_batch=[0],
        element_type="f64",
    )
    module = b.finish(b.tuple([plain, summed, batched]))
    plain, summed, batched = module(X, Y)
    np.testing.assert_allclose(plain, X @ Y.T, rtol=1e-5)
    np.testing.assert_allclose(summed, X.T @ Y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(batched, (X.astype(float) * Y).sum(axis=1), rtol=1e-5, atol=1e-6)
    assert batched.dtype == np.float64


def test_elements_of_tuples() -> None:
    b = tw.Builder()
    pair = b.parameter("pair", "(f32[], s32[2])")
    module = b.finish(b.get_tuple_element(pair, 1))
    np.testing.assert_array_equal(module((1.0, [3, 4])), [3, 4])


def test_what_is_refused() -> None:
    b = tw.Builder()
    x, y = b.parameter("x", "f32[4,5]"), b.parameter("y", "f32[5]")
    with pytest.raises(tw.UsageError, match=r"`binary` of `x` f32\[4,5\] and `y` f32\[5\]"):
        b.binary("add", x, y)
    with pytest.raises(tw.UsageError, match="no op `plus`"):
        b.binary("plus", x, x)
    with pytest.raises(tw.UsageError, match="no monoid `mean`"):
        b.reduce(x, "mean", [0])
    with pytest.raises(tw.UsageError, match="no element type `f31`"):
        b.convert(x, "f31")
    with pytest.raises(tw.UsageError, match="`LT`"):
        b.compare("<", x, x)
    with pytest.raises(tw.UsageError, match="contracting"):
        b.dot(x, y, lhs_contracting=[1])
    with pytest.raises(tw.UsageError, match="another builder"):
        b.unary("negate", tw.Builder().parameter("x", "f32[]"))
    with pytest.raises(tw.ParseError):
        b.op("transpose", [x], "dimensions={0,0}")
    b.finish(x)
    with pytest.raises(tw.UsageError, match="finished"):
        b.unary("negate", x)
    with pytest.raises(tw.UsageError, match="finished"):
        b.finish(x)


def test_a_loop_counts_and_sums() -> None:
    b = tw.Builder("loop")
    x = b.parameter("x", "f32[4,5]")
    state = "(s32[], f32[4,5], f32[4,5])"

    def more(b: tw.Builder) -> tw.Value:
        count = b.get_tuple_element(b.parameter("state", state), 0)
        return b.compare("LT", count, b.constant(3, "s32"))

    def step(b: tw.Builder) -> tw.Value:
        old = b.parameter("state", state)
        count, total, array = (b.get_tuple_element(old, index) for index in range(3))
        count = b.binary("add", count, b.constant(1, "s32"))
        return b.tuple([count, b.binary("add", total, array), array])

    condition, body = b.computation("more", more), b.computation("step", step)
    assert (body.name, repr(condition)) == ("step", "<Subcomputation more>")
    zeros = b.broadcast(b.constant(0.0, "f32"), [4, 5])
    init = b.tuple([b.constant(0, "s32"), zeros, x])
    module = b.finish(b.get_tuple_element(b.while_loop(condition, body, init), 1))
    np.testing.assert_allclose(module(X), 3 * X, rtol=1e-6)
    assert repr(body) == "<Subcomputation of a finished module>"


def branches(b: tw.Builder) -> tuple[tw.Subcomputation, ...]:
    """Computations that negate, double and square."""

    def of(name: str, opcode: str, times: int) -> tw.Subcomputation:
        def build(b: tw.Builder) -> tw.Value:
            operands = [b.parameter("a", "f32[4,5]")] * times
            return b.op(opcode, operands)

        return b.computation(name, build)

    return of("minus", "negate", 1), of("double", "add", 2), of("square", "multiply", 2)


def test_branches_and_calls() -> None:
    b = tw.Builder()
    x, which = b.parameter("x", "f32[4,5]"), b.parameter("which", "s32[]")
    minus, double, square = branches(b)
    pred = b.compare("EQ", which, b.constant(0, "s32"))
    one = b.conditional(pred, minus, x, double, x)
    other = b.conditional_by_index(which, [(minus, x), (double, x), (square, x)])
    module = b.finish(b.tuple([one, other, b.call(square, [x])]))
    for index, (first, second) in enumerate([(-X, -X), (2 * X, 2 * X), (2 * X, X * X)]):
        results = module(X, np.int32(index))
        for result, expected in zip(results, (first, second, X * X), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_reductions_and_sorts_by_computations() -> None:
    def farther(b: tw.Builder) -> tw.Value:
        one, other = b.parameter("one", "f32[]"), b.parameter("other", "f32[]")
        return b.binary("maximum", b.unary("abs", one), b.unary("abs", other))

    def greater(b: tw.Builder) -> tw.Value:
        return b.compare("GT", b.parameter("one", "f32[]"), b.parameter("other", "f32[]"))

    b = tw.Builder()
    x = b.parameter("x", "f32[4,5]")
    by, comparator = b.computation("farther", farther), b.computation("greater", greater)
    with pytest.raises(tw.UsageError, match="a computation needs an `init`"):
        b.reduce(x, by, [1])
    largest = b.reduce(x, by, [1], b.constant(0.0, "f32"))
    module = b.finish(b.tuple([largest, b.sort([x], 1, comparator)]))
    largest, in_order = module(X)
    np.testing.assert_array_equal(largest, np.abs(X).max(axis=1))
    np.testing.assert_array_equal(in_order, -np.sort(-X, axis=1))


def test_a_computation_that_fails_is_left_out() -> None:
    b = tw.Builder()
    x = b.parameter("x", "f32[4,5]")
    with pytest.raises(ZeroDivisionError):
        b.computation("bad", lambda b: 1 / 0)
    with pytest.raises(tw.UsageError, match="`build` returns the root of `bad`"):
        b.computation("bad", lambda b: None)
    with pytest.raises(tw.UsageError, match="computation"):
        b.computation("bad", lambda b: x)
    inner = b.computation("bad", lambda b: b.parameter("p", "f32[4,5]"))
    with pytest.raises(tw.UsageError, match="there is a computation `bad`"):
        b.computation("bad", lambda b: b.parameter("p", "f32[4,5]"))
    other = tw.Builder()
    with pytest.raises(tw.UsageError, match="another builder"):
        other.call(inner, [other.parameter("x", "f32[4,5]")])
    module = b.finish(b.call(inner, [x]))
    np.testing.assert_array_equal(module(X), X)
    assert [each.name for each in module.computations] == ["bad", "main"]


def test_many_ops_with_attributes() -> None:
    b = tw.Builder()
    x = b.parameter("x", "f32[4,5]")
    for _ in range(20_000):
        x = b.op("transpose", [x], "dimensions={1,0}")
    module = b.finish(x)
    assert [each.name for each in module.entry][:3] == ["x", "transpose", "transpose.1"]
    assert module.root.name == "transpose.19999" and module.instruction_count == 20_001


def test_the_first_op_has_no_operands() -> None:
    b = tw.Builder()
    counts = b.op("iota", [], "iota_dimension=0", shape="s32[3]")
    module = b.finish(b.op("negate", [counts]))
    np.testing.assert_array_equal(module(), [0, -1, -2])


def test_an_op_that_is_refused_leaves_no_trace() -> None:
    def sums(attempts: list[str]) -> tw.Module:
        b = tw.Builder()
        x, zero = b.parameter("x", "f32[4,5]"), b.constant(0.0, "f32")
        for attributes in attempts:
            with pytest.raises(tw.TilewrightError):
                b.op("reduce", [x, zero], attributes)
        add = b.computation(
            "sum", lambda b: b.binary("add", b.parameter("a", "f32[]"), b.parameter("b", "f32[]"))
        )
        return b.finish(b.reduce(x, add, [1], zero))

    region = "{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }"
    module = sums(
        [
            f"dimensions={{1}}, to_apply={region}",
            f"dimensions={{7}}, to_apply={region}",
            "dimensions={1}, to_apply=none",
            f"dimensions={{1}}, to_apply={region}, {{",
        ]
    )
    assert module == sums([])
    assert [each.name for each in module.computations] == ["sum", "main"]
    np.testing.assert_allclose(module(X), X.sum(axis=1), rtol=1e-5)


def test_a_module_is_not_finished_within_a_computation() -> None:
    b = tw.Builder()
    x = b.parameter("x", "f32[4,5]")

    def build(b: tw.Builder) -> tw.Value:
        value = b.parameter("p", "f32[4,5]")
        with pytest.raises(tw.TilewrightError):
            b.finish(value)
        return value

    with pytest.raises(tw.UsageError, match="finished"):
        b.computation("inner", build)
    with pytest.raises(tw.UsageError, match="finished"):
        b.unary("negate", x)
