"""Nothing that Python does reaches memory that is lent, shared or gone."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import tilewright as tw
from tilewright import _core
from tilewright import pattern as p

TEXT = """HloModule m

ENTRY main {
  x = f32[64,256] parameter(0)
  y = f32[64,256] negate(x)
  ROOT z = f32[64,256] exponential(y)
}
"""


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads take turns far more often than they do by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def rule_of(replace: Callable[[tw.Match, tw.Replacement], object]) -> tw.Rule:
    return tw.Rule("odd", p.negate(p.any("x")), replace, numerics="exact", always=True)


def buffer_of(array: np.ndarray) -> _core.Buffer:
    """The library's object that owns the memory of an output."""
    base = array.base
    while not isinstance(base, _core.Buffer):
        base = base.obj if isinstance(base, memoryview) else base.base
    return base


@pytest.mark.usefixtures("many_switches")
def test_threads_lose_what_was_lent() -> None:
    ended: list[str] = []
    threads: list[threading.Thread] = []

    def use(found: tw.Match, new: tw.Replacement) -> None:
        x, module = found["x"], found.module
        uses: list[Callable[[], object]] = [
            lambda: x.users,
            lambda: str(module),
            lambda: new.op("negate", [x]).shape,
            lambda: new.op("transpose", [x], "dimensions={1,0}").shape,
        ]
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for each in list(uses):
                try:
                    each()
                except tw.RemovedError:
                    uses.remove(each)
            if not uses:
                ended.append("removed")
                return

    def replace(found: tw.Match, new: tw.Replacement) -> tw.Instruction:
        started = [threading.Thread(target=use, args=(found, new)) for _ in range(4)]
        for thread in started:
            thread.start()
        threads.extend(started)
        time.sleep(0.02)
        return found["x"]

    module = tw.optimize(TEXT, passes=[rule_of(replace), "dce"]).module
    for thread in threads:
        thread.join()
    assert threads and ended == ["removed"] * len(threads)
    assert [each.opcode for each in module.entry] == ["parameter", "exponential"]


def test_rules_that_call_the_library_again() -> None:
    inner: list[tw.Replacement] = []
    depth = 0

    def replace(found: tw.Match, new: tw.Replacement) -> object:
        nonlocal depth
        depth += 1
        if depth == 1:
            # The same rule, on the module that is lent to it, on this thread and on another.
            assert tw.optimize(found.module, passes=[rule]).module.root.opcode == "exponential"
            assert rule.why_not(found.root) is None
            with pytest.raises(tw.UsageError), found.module.edit():
                pass
            assert inner
            for other in inner:
                with pytest.raises(tw.RemovedError):
                    other.constant(1.0, "f32")
        inner.append(new)
        return new.op("copy", [found["x"]])

    rule = rule_of(replace)
    done = tw.optimize(TEXT, passes=[rule])
    x = np.linspace(-1, 1, 64 * 256, dtype=np.float32).reshape(64, 256)
    # The rule takes the sign away.
    np.testing.assert_allclose(done.module(x), np.exp(x), rtol=1e-6)


def test_exceptions_keep_nothing_that_was_lent() -> None:
    def replace(found: tw.Match, new: tw.Replacement) -> object:
        made = new.op("copy", [found["x"]])
        raise LookupError(found, new, made)

    with pytest.raises(LookupError) as caught:
        tw.optimize(TEXT, passes=[rule_of(replace)])
    found, new, made = caught.value.args
    for use in (
        lambda: found.root.name,
        lambda: str(found.module),
        lambda: new.op("negate", [made]),
        lambda: made.shape,
    ):
        with pytest.raises(tw.RemovedError):
            use()


def test_parts_outlive_their_module() -> None:
    root = tw.Module.load(TEXT).root
    operand = root.operands[0]
    walk = iter(tw.Module.load(TEXT).entry.post_order())
    gc.collect()
    assert (root.name, operand.name, next(walk).name) == ("z", "y", "x")


@pytest.mark.usefixtures("many_switches")
def test_edits_of_many_threads_are_all_kept() -> None:
    chain = "".join(f"  n{i + 1} = f32[4] negate(n{i})\n" for i in range(3000))
    module = tw.Module.load(
        f"HloModule m\nENTRY main {{\n  n0 = f32[4] parameter(0)\n{chain}"
        "  ROOT z = f32[4] copy(n3000)\n}"
    )
    wrong: list[BaseException] = []
    kept: list[str] = []

    def edit(number: int) -> None:
        end = time.monotonic() + 60
        for turn in range(3):
            while time.monotonic() < end:
                edit = module.edit()
                try:
                    e = edit.__enter__()
                except tw.UsageError:
                    time.sleep(0)
                    continue
                name = f"of_{number}_{turn}"
                try:
                    e.insert("sine", [module.entry["n0"]], name=name)
                    edit.__exit__(None, None, None)
                except tw.TilewrightError as error:
                    wrong.append(error)
                else:
                    kept.append(name)
                break

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    there = [each.name for each in module.entry if each.opcode == "sine"]
    assert sorted(there) == sorted(kept) and len(kept) == 12


def test_many_views_of_an_output_are_written_at_once() -> None:
    b = tw.Builder()
    array = b.finish(b.unary("negate", b.parameter("x", "s32[4,100000]")))(
        np.zeros((4, 100000), np.int32)
    )
    buffer = buffer_of(array)

    def write(row: int, buffer: _core.Buffer) -> None:
        for _ in range(50):
            # NumPy adds without the GIL, while other threads ask for views.
            np.frombuffer(buffer, np.int32).reshape(4, -1)[row] += row

    threads = [threading.Thread(target=write, args=(row, buffer)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    view = memoryview(buffer)
    assert not view.readonly
    del buffer
    with pytest.raises(ValueError):
        array.resize((8, 100000))
    expected = np.repeat(np.arange(4, dtype=np.int32)[:, None] * 50, 100000, axis=1)
    np.testing.assert_array_equal(array, expected)
    del array
    gc.collect()
    np.testing.assert_array_equal(np.frombuffer(view, np.int32).reshape(4, -1), expected)


def test_words_in_the_other_byte_order_are_refused() -> None:
    with pytest.raises(tw.UsageError, match="byte order"):
        _core.Literal.array("u32", [1], np.ones(1, ">u4"))
    b = tw.Builder()
    # The public functions turn the bytes round instead.
    np.testing.assert_array_equal(b.finish(b.constant(np.ones(1, ">u4")))(), [1])


def test_bytes_that_are_no_truth_values() -> None:
    b = tw.Builder()
    module = b.finish(b.unary("not", b.parameter("x", "pred[5]")))
    result = module(np.zeros(5, np.bool_))
    result.view(np.uint8)[:] = [0, 2, 7, 255, 1]
    memoryview(buffer_of(result))
    np.testing.assert_array_equal(module(result), [True, False, False, False, False])
    del result
    gc.collect()


def test_inputs_change_after_they_were_read() -> None:
    array = np.arange(6, dtype=np.float32)
    b = tw.Builder()
    module = b.finish(b.constant(array))
    array[:] = 9
    array.resize(100_000, refcheck=False)
    del array
    gc.collect()
    np.testing.assert_array_equal(module(), np.arange(6))


@pytest.mark.parametrize(
    ("element_type", "dims", "words"),
    [
        ("f32", [3], np.zeros(2, np.uint32)),
        ("f32", [-1], np.zeros(1, np.uint32)),
        ("f32", [1 << 62, 4], np.zeros(0, np.uint32)),
        ("f32", [2], np.zeros(2, np.float32)),
        ("f32", [2], np.zeros(8, np.uint8)),
        ("f32", [1], np.zeros(5, np.uint8)[1:].view(np.uint32)),
        ("c64", [1], np.zeros(3, np.uint32)[:1]),
        ("f32", [1], None),
    ],
    ids=["few", "negative", "huge", "floats", "bytes", "unaligned", "half", "none"],
)
def test_buffers_that_do_not_fit(element_type: str, dims: list[int], words: object) -> None:
    with pytest.raises((tw.UsageError, BufferError, TypeError)):
        _core.Literal.array(element_type, dims, words)
