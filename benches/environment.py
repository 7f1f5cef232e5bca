"""Environments with the compilers of TPUs and GPUs, which are installed when they are first asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The version of JAX for which the compilers are built, and what this script needs besides.
REQUIREMENTS = ("jax==0.12.0.1", "numpy")
# The engines that can be asked, and the targets for them.
TARGETS = {"tpu-v5e": "tpu-v5e", "tpu-v6e": "tpu-v5e", "xla-gpu-h100": "xla-gpu-h100"}


def in_environment(name: str) -> None:
    """Starts this script again in the engine's environment, `target/engines/NAME`, which is made if it is
    not there."""
    folder = ROOT / "target" / "engines" / name
    python = folder / "bin" / "python"
    if Path(sys.prefix) == folder:
        return
    if not (folder / "ready").exists():
        print(f"installing the compiler of {name} into {folder}", file=sys.stderr)
        try:
            install(folder, python, name)
        except subprocess.CalledProcessError as error:
            needs = "it needs Python 3.11 or newer on Linux, and PyPI"
            sys.exit(f"the compiler of {name} cannot be installed ({needs}): {error}")
    os.execv(python, [str(python), *sys.argv])


def install(folder: Path, python: Path, name: str) -> None:
    """Makes an environment with JAX and the engine's compiler."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *REQUIREMENTS], check=True)
    asked = "import engines, sys; print(*engines.ENGINES[sys.argv[1]].requirements)"
    paths = os.environ | {"PYTHONPATH": str(ROOT / "tests" / "python")}
    listed = subprocess.run(
        [python, "-c", asked, name], env=paths, capture_output=True, text=True, check=True
    )
    subprocess.run([*pip, "--no-deps", *listed.stdout.split()], check=True)
    (folder / "ready").touch()
