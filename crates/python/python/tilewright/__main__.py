"""`python -m tilewright script.py args...`: runs a script with the rewriter installed.

`python -m tilewright --version` prints the version."""

from __future__ import annotations

import os
import runpy
import sys

from tilewright import _core


def main() -> None:
    """Runs a script, or a module after `-m`, whose compilations are rewritten."""
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help"):
        print(__doc__, "\nTILEWRIGHT=TARGET names a target; TILEWRIGHT_REPORT=1 prints a report.")
        raise SystemExit(0 if args else 2)
    if args[0] in ("-V", "--version"):
        print(f"tilewright {_core.__version__}")
        return
    os.environ.setdefault("TILEWRIGHT", "1")
    from tilewright._jax._install import from_environment

    from_environment()
    if args[0] == "-m" and len(args) > 1:
        sys.argv = args[1:]
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = args
        sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
        runpy.run_path(args[0], run_name="__main__")


if __name__ == "__main__":
    main()
