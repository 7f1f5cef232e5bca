"""The `tilewright` binary and the fixtures, as the tests and benches find them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"

# Whether what takes too long for every commit runs, too.
IS_NIGHT = os.environ.get("TILEWRIGHT_NIGHTLY") == "1"

# Without LLVM's optimisation, of which most tests are not, XLA:CPU compiles twice as fast. What XLA
# makes of a module before that stays as it is.
QUICK_FLAGS = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"


def binary() -> Path:
    """The binary: $TILEWRIGHT_BIN, or the release build in this repository."""
    return Path(os.environ.get("TILEWRIGHT_BIN", ROOT / "target/release/tilewright"))


def example(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    """What an example of the library, built beside the binary, makes of arguments."""
    command = [str(binary().parent / "examples" / name), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def tilewright(*args: str | Path, timeout: float = 120.0) -> str:
    """Runs the binary and returns its stdout; raises with its stderr if it fails."""
    return run(*args, timeout=timeout).stdout


def run(*args: str | Path, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Runs the binary; raises with its stderr if it fails."""
    command = [str(binary()), *map(str, args)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode != 0:
        shown = " ".join(command)
        raise RuntimeError(f"{shown}\nexit code {done.returncode}\n{done.stderr}")
    return done


def hlo_files(*folders: str) -> list[Path]:
    """The .hlo files of fixture folders such as "models" or "text/ok", sorted."""
    return [
        path for folder in folders for path in sorted((FIXTURES / folder).glob("*.hlo"))
    ]


def fixture_id(path: Path) -> str:
    """A readable test id: folder and name."""
    return str(path.relative_to(FIXTURES).with_suffix(""))


def engine_file(folder: Path, *cells: str) -> Path:
    """A target like `cpu` with these cells as its table of reductions, which have one range of lengths.
    Others of their types and sources are fast."""
    path = folder / "engine.toml"
    others = {" ".join(cell.split()[:3]) for cell in cells}
    fast = (f"{other} mixed-columns nested 1 1 | as-is 0.1" for other in sorted(others))
    lines = "".join(f"{cell}\n" for cell in (*cells, *fast))
    path.write_text(
        'base = "cpu"\n[reductions]\nmeasured = "nowhere"\nleast_elements = 1\n'
        f"innermost = [1]\nlongest = [1]\ncells = '''\n{lines}'''\n",
        encoding="utf-8",
    )
    return path
