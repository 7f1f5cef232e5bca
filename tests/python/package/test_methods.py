"""Draw, report, compare and reduce a module: `Module.graph`, `report`, `diff`, `reduce`."""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import tilewright as tw
from tilewright import _methods

FIXTURES = Path(__file__).parents[3] / "fixtures"
GROUP_NORM = FIXTURES / "rewrite" / "reshape-out-of-region" / "group_norm.hlo"

WAVES = """HloModule waves

ENTRY main {
  x = f32[64,8] parameter(0)
  y = f32[64,8] sine(x)
  z = f32[64,8] tanh(y)
  ROOT w = f32[64,8] add(z, x)
}
"""


def waves() -> tw.Module:
    return tw.Module.from_text(WAVES)


def has_tanh(module: tw.Module) -> bool:
    return any(each.opcode == "tanh" for each in module.entry)


def test_a_module_is_drawn_in_three_forms() -> None:
    module = waves()
    svg = module.graph()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert all(op in svg for op in ("sine", "tanh", "add"))
    dot = module.graph("dot")
    assert dot.startswith("digraph") and "tanh" in dot
    assert module.graph(form="html").startswith("<!DOCTYPE html>")
    assert module == waves()


def test_a_part_of_a_module_is_drawn() -> None:
    module = waves()
    near = module.graph("dot", around="y", depth=1)
    assert "sine" in near and "tanh" in near and "add" not in near
    assert module.graph("dot", around=module.entry["y"], depth=1) == near
    whole = tw.Module.load(GROUP_NORM)
    part = whole.graph("dot", computation=whole.entry)
    assert part == whole.graph("dot", computation=whole.entry.name)


def test_a_module_is_drawn_before_and_after() -> None:
    module = tw.Module.load(GROUP_NORM)
    both = module.graph(after=True)
    assert "before" in both and "after" in both and both != module.graph()
    assert module.graph(after=True, passes=["dce"]) != both
    assert module == tw.Module.load(GROUP_NORM)


def test_nodes_are_coloured_by_costs_and_times() -> None:
    module = waves()
    assert "coloured by modelled cycles" in module.graph(cost=True)
    ran = tw.run(module, np.ones((64, 8), np.float32), profile=True)
    timed = module.graph(profile=ran)
    assert "coloured by measured time" in timed and timed == module.graph(profile=ran.report)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "png"}, "there is no form `png` of pictures; there are: dot, svg, html"),
        ({"around": "z", "computation": "main"}, "around and computation exclude"),
        ({"around": "zz"}, "no instruction `zz`"),
        ({"computation": "body"}, "no computation `body`"),
        ({"cost": True, "profile": True}, "cost and profile exclude"),
        ({"profile": True}, "profile=True"),
        ({"target": "no-such"}, "no-such"),
        ({"after": True, "exact": True, "fast_math": True}, "exact and fast_math exclude"),
    ],
)
def test_pictures_that_cannot_be(options: dict[str, object], message: str) -> None:
    module = waves()
    if "profile" in options:
        # Of a run without a profile.
        options["profile"] = tw.run(module, np.ones((64, 8), np.float32))
    with pytest.raises(tw.UsageError, match=message):
        module.graph(**options)  # type: ignore[arg-type]


def test_a_picture_of_too_many_nodes_is_refused() -> None:
    b = tw.Builder("many")
    x = b.parameter("x", "f32[8]")
    for _ in range(900):
        x = b.unary("negate", x)
    module = b.finish(x)
    with pytest.raises(tw.UsageError, match="give around or computation, or take the form `html`"):
        module.graph()
    assert "negate" in module.graph("html")


def test_a_report_says_what_was_done() -> None:
    module = tw.Module.load(GROUP_NORM)
    page = module.report()
    assert page.startswith("<!doctype html>") and 'src="data:image/svg+xml' in page
    assert "group_norm" in page and "modelled cycles on tpu-like" in page
    assert "The modules were not compared" in page
    assert "<strong>equal" in module.report(check=True)
    with pytest.raises(tw.EvaluationError, match="max_steps"):
        module.report(check=True, max_steps=1)
    with pytest.raises(tw.UsageError, match="no pass"):
        module.report(passes=["no-such"])


def test_rules_of_python_run_for_pictures_and_reports() -> None:
    from tilewright import pattern as p

    rule = tw.Rule(
        "sine-alone",
        p.tanh(p.any("x")),
        lambda found, new: found["x"],
        law="as a test",
        numerics="exact",
        always=True,
    )
    assert "sine-alone" in waves().report(passes=[rule])

    def fail(found: tw.Match, new: tw.Replacement) -> tw.NewValue:
        raise ZeroDivisionError

    bad = tw.Rule("bad", p.tanh(p.any("x")), fail, law="", numerics="exact", always=True)
    for draw in (
        lambda: waves().graph(after=True, passes=[bad]),
        lambda: waves().report(passes=[bad]),
    ):
        with pytest.raises(ZeroDivisionError):
            draw()


def test_the_same_module_under_other_names() -> None:
    renamed = WAVES.replace("y ", "first ").replace("(y)", "(first)").replace("z", "second")
    found = waves().diff(renamed)
    assert found.same and not found.computations
    assert str(found) == "same: 4 instructions in both"


def test_a_difference_is_told() -> None:
    other = tw.Module.from_text(WAVES.replace("tanh", "logistic"))
    found = waves().diff(other)
    assert not found.same and isinstance(found, tw.Difference)
    assert found.counts.changed == 1 and found.counts.unchanged == 3
    (changed,) = found.computations[0].changed
    assert (changed.a.name, changed.b.name) == ("z", "z")
    assert changed.b.line is not None
    assert "logistic" in str(other).splitlines()[changed.b.line - 1]
    (change,) = changed.changes
    assert (change.what, change.before, change.after) == ("op", "tanh", "logistic")
    text = str(found)
    assert text.startswith("--- a\n+++ b\n") and "op: tanh -> logistic" in text
    assert found.to_dict()["same"] is False
    assert "<html" in found.html and "logistic" in found.html
    assert "op: tanh" not in str(waves().diff(other, limit=0))


def test_metadata_is_compared_if_asked() -> None:
    named = WAVES.replace("tanh(y)", 'tanh(y), metadata={op_name="here"}')
    assert waves().diff(named).same
    assert not waves().diff(named, metadata=True).same


def test_a_module_is_reduced() -> None:
    module = waves()
    asked: list[tw.Module] = []
    kept: list[int] = []

    def keep(candidate: tw.Module) -> bool:
        asked.append(candidate)
        return has_tanh(candidate)

    smallest = module.reduce(keep, progress=lambda better: kept.append(better.instruction_count))
    assert [each.opcode for each in smallest.entry] == ["parameter", "tanh"]
    assert smallest.root.shape.size == 1
    assert asked[0] == module and module == waves()
    assert kept[-1] == 2 and len(kept) < len(asked)
    # What it was given, it may keep and change.
    with asked[0].edit() as e:
        e.set_root(asked[0].entry["y"])
    assert module == waves()


def test_what_keep_returns_is_taken_for_true_as_python_does() -> None:
    assert waves().reduce(lambda module: np.bool_(has_tanh(module))).instruction_count == 2
    with pytest.raises(tw.UsageError, match="keep is false for the module itself"):
        waves().reduce(lambda module: None)
    with pytest.raises(ValueError, match="ambiguous"):
        waves().reduce(lambda module: np.ones(2))


def test_a_reduction_ends_at_its_limits() -> None:
    calls = 0

    def keep(module: tw.Module) -> bool:
        nonlocal calls
        calls += 1
        return has_tanh(module)

    assert waves().reduce(keep, max_runs=2).instruction_count >= 2
    assert calls == 2
    assert waves().reduce(keep, max_seconds=0.0) == waves()
    assert calls <= 3
    for wrong in (-1.0, float("nan")):
        with pytest.raises(tw.UsageError, match="max_seconds"):
            waves().reduce(keep, max_seconds=wrong)
    with pytest.raises(TypeError):
        waves().reduce("tanh")  # type: ignore[arg-type]


@pytest.mark.parametrize("when", [1, 3])
def test_what_keep_raises_ends_the_search(when: int) -> None:
    calls = 0

    def keep(module: tw.Module) -> bool:
        nonlocal calls
        calls += 1
        if calls == when:
            raise ZeroDivisionError
        return has_tanh(module)

    with pytest.raises(ZeroDivisionError):
        waves().reduce(keep)
    assert calls == when


def test_what_progress_raises_ends_the_search() -> None:
    def progress(module: tw.Module) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        waves().reduce(has_tanh, progress=progress)


@pytest.mark.usefixtures("hears_control_c")
def test_control_c_ends_a_reduction() -> None:
    best: list[tw.Module] = []

    def keep(module: tw.Module) -> bool:
        if best:
            signal.raise_signal(signal.SIGINT)
            # Python hears it before the next line, and `keep` runs on the main thread.
            best.clear()
        return has_tanh(module)

    with pytest.raises(KeyboardInterrupt):
        waves().reduce(keep, progress=best.append)
    assert has_tanh(best[-1])


def test_keep_runs_on_the_thread_that_called() -> None:
    threads: set[int] = set()

    def keep(module: tw.Module) -> bool:
        threads.add(threading.get_ident())
        return has_tanh(module)

    def search() -> int:
        waves().reduce(keep)
        return threading.get_ident()

    with ThreadPoolExecutor(1) as pool:
        caller = pool.submit(search).result()
    assert threads == {caller} != {threading.get_ident()}


def test_keep_may_reduce_too() -> None:
    inner: list[int] = []

    def keep(module: tw.Module) -> bool:
        if not has_tanh(module):
            return False
        inner.append(module.reduce(has_tanh).instruction_count)
        return True

    assert waves().reduce(keep).instruction_count == 2
    assert set(inner) == {2}


def test_a_module_under_edit_is_verified() -> None:
    module = waves()
    with module.edit() as e:
        e.set_root(module.entry["y"])
        assert "sine" in module.graph("dot")
        assert not module.diff(WAVES).same
        assert module.reduce(lambda each: True).instruction_count >= 1


@pytest.mark.parametrize("name", ["graph", "report", "diff"])
def test_signatures_are_those_of_the_functions(name: str) -> None:
    method: Callable[..., object] = getattr(tw.Module, name)
    told = inspect.signature(method).parameters
    real = inspect.signature(getattr(_methods, name)).parameters
    assert [(p.name, p.kind, p.default) for p in told.values()][1:] == [
        (p.name, p.kind, p.default) for p in real.values()
    ][1:]
