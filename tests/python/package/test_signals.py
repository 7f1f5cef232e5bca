"""Long work hears Ctrl-C, and lets other threads run."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tilewright as tw
from tilewright import _core

ENDLESS = """HloModule m
c { x = s32[] parameter(0)
    ROOT t = pred[] constant(true) }
b { x = s32[] parameter(0)
    one = s32[] constant(1)
    ROOT y = s32[] add(x, one) }
ENTRY e { x = s32[] parameter(0)
          ROOT w = s32[] while(x), condition=c, body=b }
"""


def centered(times: int) -> str:
    """A module that takes the mean of rows away again and again: many kernels."""
    lines = "".join(
        f"  r{i} = f32[64] reduce(x{i}, zero), dimensions={{1}}, to_apply=add\n"
        f"  b{i} = f32[64,256] broadcast(r{i}), dimensions={{0}}\n"
        f"  x{i + 1} = f32[64,256] subtract(x{i}, b{i})\n"
        for i in range(times)
    )
    return f"""HloModule centered
add {{ a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT c = f32[] add(a, b) }}
ENTRY e {{
  x0 = f32[64,256] parameter(0)
  zero = f32[] constant(0)
{lines}  ROOT y = f32[64,256] copy(x{times})
}}
"""


PRELUDE = f"""
import signal
import time

import numpy as np
import tilewright as tw
from tilewright import _core

ENDLESS = {ENDLESS!r}
{inspect.getsource(centered)}
# To lower it takes minutes.
MANY_KERNELS = tw.Module.load(centered(3000))
LIMIT = 1 << 60

class Endless(tw.Pass):
    name = "endless"

    def run(self, module):
        with module.edit() as e:
            e.set_metadata(module.root, op_name="again")
        return 1

# A shell that runs the tests in the background has Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
try:
    WORK
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

ENDLESS_PASSES = "while True: tw.optimize(ENDLESS, passes=[Endless()])"


@pytest.mark.parametrize(
    "work",
    [
        "tw.run(ENDLESS, 1, max_steps=LIMIT)",
        "tw.check(ENDLESS, ENDLESS, max_steps=LIMIT)",
        ENDLESS_PASSES,
        "tw.lower(MANY_KERNELS)",
        "tw.simulate(MANY_KERNELS, seed=0)",
        "while True: tw.Module.load(ENDLESS).report(passes=[Endless()])",
        "while True: tw.Module.load(ENDLESS).reduce(lambda module: not time.sleep(0.001))",
        "tw.Module.load(ENDLESS).reduce(lambda module: not time.sleep(60))",
    ],
    ids=["run", "check", "optimize", "lower", "simulate", "report", "reduce", "within keep"],
)
def test_control_c_is_heard(work: str) -> None:
    program = PRELUDE.replace("WORK", work)
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        assert child.poll() is None, "the work has ended by itself"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert (out, child.returncode) == ("interrupted\n", 0), err
    finally:
        child.kill()
        child.wait()


def test_signals_are_heard_while_costs_are_computed() -> None:
    heard = 0

    def hear(number: int, frame: object) -> None:
        nonlocal heard
        heard += 1

    module = tw.Module.load(centered(30_000))
    before = signal.signal(signal.SIGALRM, hear)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        _core.cost(module, "tpu-like")
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # A signal that comes within a call is heard once, after it, unless the call listens.
    assert heard > 2


@pytest.mark.parametrize(
    "work",
    [lambda module: tw.cost(module), lambda module: tw.lower(module, plan=True)],
    ids=["cost", "plan"],
)
def test_what_a_handler_raises_is_raised(work: Callable[[tw.Module], object]) -> None:
    class Heard(Exception):
        pass

    def hear(number: int, frame: object) -> None:
        raise Heard

    module = tw.Module.load(centered(30_000))
    before = signal.signal(signal.SIGALRM, hear)
    try:
        with pytest.raises(Heard):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            work(module)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert work(module)


def test_other_threads_run_meanwhile() -> None:
    done = threading.Event()

    def count() -> int:
        counted = 0
        while not done.is_set():
            counted += 1
            time.sleep(0.001)
        return counted

    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(count)
        try:
            with pytest.raises(tw.EvaluationError, match="max_steps"):
                tw.run(ENDLESS, 1, max_steps=300_000)
        finally:
            done.set()
    assert counting.result() > 5


def test_work_runs_on_many_threads() -> None:
    b = tw.Builder()
    x = b.parameter("x", "f32[100]")
    module = b.finish(b.unary("negate", x))
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: module(np.full(100, n, np.float32)), range(8)))
    for n, result in enumerate(results):
        np.testing.assert_array_equal(result, np.full(100, -n, np.float32))
