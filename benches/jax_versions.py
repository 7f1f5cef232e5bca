#!/usr/bin/env python3
"""Runs the tests of the door into JAX on each minor version of JAX of the last twelve months.

    python3.12 benches/jax_versions.py [--only VERSION ...] [--cache FOLDER]

Builds the package once, makes a virtual environment for each version, and runs
tests/python/jax_integration in it, without the fifty steps of each model.  Prints a row for each
version.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "python" / "jax_integration"
FILES = ("test_features.py", "test_door.py", "test_sharded_jit.py")

# The last release of each minor version.
VERSIONS = ("0.12.0.1", "0.11.2", "0.10.2", "0.9.2", "0.8.3")


def environment(folder: Path, version: str, wheel: Path) -> Path:
    """The Python of an environment with a version of JAX and the package."""
    python = folder / version / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / version)], check=True)
    packages = [f"jax=={version}", f"jaxlib=={version}", "pytest", "flatbuffers", "flax", "optax"]
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *packages], check=True)
    subprocess.run([*install, "--force-reinstall", "--no-deps", str(wheel)], check=True)
    return python


def wheel_in(folder: Path) -> Path:
    """Builds the wheel of the package."""
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, *command, str(ROOT / "crates" / "python")], check=True)
    return next(folder.glob("tilewright-*.whl"))


def main() -> None:
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="+", default=VERSIONS, help="versions to try")
    parser.add_argument("--cache", type=Path, help="a folder for the environments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.cache or Path(scratch)).resolve()
        wheel = wheel_in(Path(scratch))
        print("| jax | tests |\n|---|---|")
        for version in options.only:
            python = environment(folder, version, wheel)
            command = [str(python), "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
            done = subprocess.run(
                [*command, *(str(TESTS / file) for file in FILES)], capture_output=True, text=True
            )
            lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines()
            failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
            print(f"| {version} | {lines[-1]} |", flush=True)
            for line in failed:
                print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
