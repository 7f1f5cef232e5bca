"""What all tests share: the binary, what waits for the night, and which module comes first."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tool

if not tool.IS_NIGHT:
    # Before any test imports JAX; the processes that tests start have it, too.
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {tool.QUICK_FLAGS}".strip()

# The modules that take ten seconds and more, longest first: workers end together if these begin
# early.
LONGEST = (
    "test_features.py",
    "test_door.py",
    "test_tune.py",
    "test_proto.py",
    "test_stablehlo_text.py",
    "test_semantics.py",
    "test_rounds.py",
    "test_distributed.py",
    "test_native.py",
    "test_composites.py",
    "test_signals.py",
    "test_generate.py",
)

# For modules, `auto` stands for one target on every machine.
os.environ["TILEWRIGHT_TARGET"] = "tpu-like"

LEFT = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keeps the order of `LONGEST`, where xdist would begin with the modules of most tests."""
    config.stash[LEFT] = 0
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def _place(item: pytest.Item) -> int:
    name = item.path.name
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Orders the modules, and leaves out by day what is marked `nightly`."""
    items.sort(key=_place)
    if tool.IS_NIGHT:
        return
    left = [item for item in items if item.get_closest_marker("nightly")]
    if left:
        config.stash[LEFT] = len(left)
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist tells how many tests it left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left"] = session.config.stash[LEFT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Every worker leaves out the same tests."""
    node.config.stash[LEFT] = getattr(node, "workeroutput", {}).get("left", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line on what was left out."""
    if config.stash[LEFT]:
        count = config.stash[LEFT]
        terminalreporter.write_line(
            f"left out: {count} nightly tests, which TILEWRIGHT_NIGHTLY=1 runs"
        )


@pytest.fixture(scope="session")
def binary() -> Path:
    """The binary under test; its absence is a failure, not a skip."""
    path = tool.binary()
    if not path.is_file():
        pytest.fail(
            f"no binary at {path}: run `cargo build --release` or set TILEWRIGHT_BIN",
            pytrace=False,
        )
    return path


@pytest.fixture
def hears_control_c() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt`, here and in children, also where a shell that runs tests
    in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
