"""Long work hears Ctrl-C, and lets other threads run."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tilewright as tw

ENDLESS = """HloModule m
c { x = s32[] parameter(0)
    ROOT t = pred[] constant(true) }
b { x = s32[] parameter(0)
    ROOT y = s32[] negate(x) }
ENTRY e { x = s32[] parameter(0)
          ROOT w = s32[] while(x), condition=c, body=b }
"""

PRELUDE = f"""
import numpy as np
import tilewright as tw

ENDLESS = {ENDLESS!r}
LIMIT = 1 << 60

class Endless(tw.Pass):
    name = "endless"

    def run(self, module):
        with module.edit() as e:
            e.set_metadata(module.root, op_name="again")
        return 1

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
    ],
    ids=["run", "check", "optimize"],
)
def test_control_c_is_heard(work: str) -> None:
    program = PRELUDE.replace("WORK", work)
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (out, child.returncode) == ("interrupted\n", 0), err


def test_other_threads_run_meanwhile() -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    with pytest.raises(tw.EvaluationError, match="max_steps"):
        tw.run(ENDLESS, 1, max_steps=300_000)
    done.set()
    thread.join()
    assert counted > 5


def test_work_runs_on_many_threads() -> None:
    b = tw.Builder()
    x = b.parameter("x", "f32[100]")
    module = b.finish(b.unary("negate", x))
    results: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(module(np.full(100, n, np.float32))))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result[0] for result in results) == [-n for n in range(7, -1, -1)]
