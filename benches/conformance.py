#!/usr/bin/env python3
"""How much of what jaxlib reads as StableHLO is read here, and whether it is the same program.

    python benches/conformance.py FOLDER... [--values] [--list] [--bin PATH]

Takes every `.mlir` file in the folders, for example checkouts of StableHLO, mlir-hlo or Shardy with their tests, and
splits them into functions, each a program by itself with the functions that it names. jaxlib converts each to HLO, as
`tilewright convert` does. A row for each folder has the functions that jaxlib converts, how many of these are refused
here, as jaxlib's HLO of them is by `tilewright verify` (invalid) or for another reason (refused), and how many are the
same HLO up to names after the cleanup. With `--values`, the others are run: they compute the same by `tilewright check`, differ,
or cannot be compared, since they are not run or have results of other types. `--list` prints the refused ones with
the reason, and those that differ.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import tool

NAME = r'@(?:[\w$.\-]+|"[^"]+")'
FUNCTION = re.compile(rf"\s*func\.func\s+(?:public |private |nested )?({NAME})")
# The seconds after which a program is not compared.
LONGEST = 20
# What stands beside functions and belongs to all of them.
SHARED = re.compile(r"\s*(?:sdy\.mesh|#\w+ =|!\w+ =)")


def functions(text: str) -> Iterator[str]:
    """The functions of a file, each as `main` of a program."""
    for part in re.split(r"^// -----.*$", text, flags=re.M):
        lines = part.split("\n")
        shared = [line for line in lines if SHARED.match(line)]
        found = dict(bodies(lines))
        for name, body in found.items():
            others = [other for known, other in found.items() if known != name and known in body]
            main = body.replace(name, "@main", 1)
            aliases = [line for line in shared if "sdy.mesh" not in line]
            meshes = [line for line in shared if "sdy.mesh" in line]
            yield "\n".join([*aliases, "module {", *meshes, *others, main, "}", ""])


def bodies(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The names of functions, and their lines: up to the brace that closes the first one."""
    at = 0
    while at < len(lines):
        begin = FUNCTION.match(lines[at])
        first, depth, opened = at, 0, False
        at += 1
        if begin is None:
            continue
        for at, line in enumerate(lines[first:], first + 1):
            code = re.sub(r'"(?:[^"\\]|\\.)*"|//.*', "", line)
            depth += code.count("{") - code.count("}")
            opened = opened or "{" in code
            if opened and depth <= 0 and "}" in code:
                break
        yield begin[1], "\n".join(lines[first:at])


def convert_all(folder: Path, log: Path, start: int) -> None:
    """Converts the programs of a folder by jaxlib, which may crash: the log says how far it came."""
    from jax._src.interpreters import mlir
    from jaxlib import _jax

    with log.open("a") as out:
        for at, path in list(enumerate(sorted(folder.glob("*.mlir"))))[start:]:
            print(json.dumps({"begins": at}), file=out, flush=True)
            try:
                with mlir.make_ir_context():
                    made = _jax.mlir.mlir_module_to_xla_computation(path.read_text())
                    path.with_suffix(".hlo").write_text(made.as_hlo_text(True))
            except Exception:
                continue


def by_jaxlib(folder: Path) -> list[Path]:
    """The programs that jaxlib converts; beside each stands its HLO."""
    log, start = folder / "log", 0
    count = len(list(folder.glob("*.mlir")))
    while start < count:
        worker = [sys.executable, __file__, str(folder), "--worker", str(start)]
        subprocess.run(worker, check=False, capture_output=True)
        lines = log.read_text().splitlines() if log.exists() else []
        begun = [json.loads(line)["begins"] for line in lines]
        if not begun or max(begun) < start:
            raise RuntimeError(f"the worker of {folder} does not begin")
        start = max(begun) + 1
    return sorted(path.with_suffix(".mlir") for path in folder.glob("*.hlo"))


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the binary, whatever becomes of it; not longer than LONGEST."""
    command = [str(tool.binary()), *map(str, arguments)]
    try:
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", "it takes too long")


def compared(program: Path, values: bool) -> tuple[str, str]:
    """What became of a program, and why."""
    ours, theirs = program.with_suffix(".ours.hlo"), program.with_suffix(".hlo")
    made = run("convert", program, "-o", ours)
    if made.returncode:
        # jaxlib checks less than XLA's verifier.
        invalid = run("verify", theirs).returncode
        return "invalid" if invalid else "refused", made.stderr.split("\n")[0]
    # jaxlib simplifies while it converts.
    clean = [path.with_suffix(".clean.hlo") for path in (ours, theirs)]
    for path, cleaned in zip((ours, theirs), clean):
        run("opt", "--pipeline", "cleanup", path, "-o", cleaned)
    if run("diff", *clean).returncode == 0:
        return "same", ""
    if not values:
        return "not compared", ""
    judged = run("check", ours, theirs)
    why = (judged.stdout + judged.stderr).strip()
    # Results of other types, as sizes that are known in one and not in the other.
    verdict = "equal values" if judged.returncode == 0 else "not compared"
    if "the outputs differ" in why:
        verdict = "different values"
    return verdict, why.split("\n")[0]


KINDS = ("invalid", "refused", "same", "equal values", "different values", "not compared")


def row(folder: Path, values: bool, listed: bool) -> str:
    """The row of a folder."""
    with tempfile.TemporaryDirectory() as place:
        texts = [file.read_text(errors="replace") for file in sorted(folder.rglob("*.mlir"))]
        programs = sorted({one for text in texts for one in functions(text)})
        for number, program in enumerate(programs):
            Path(place, f"{number:06}.mlir").write_text(program)
        converted = by_jaxlib(Path(place))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            judged = pool.map(lambda program: compared(program, values), converted)
            found = list(zip(converted, judged))
        for path, (kind, why) in found if listed else ():
            if kind in ("invalid", "refused", "different values"):
                print(f"{kind}: {why}\n{path.read_text()}")
    counts = collections.Counter(kind for _, (kind, _) in found)
    cells = [folder.name, str(len(converted)), *(str(counts[kind]) for kind in KINDS)]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--bin", type=Path, help="the tilewright binary")
    parser.add_argument("--values", action="store_true", help="run those that are not the same")
    parser.add_argument("--list", action="store_true", help="name what is refused or differs")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        return convert_all(given.folders[0], given.folders[0] / "log", given.worker)
    if given.bin is not None:
        os.environ["TILEWRIGHT_BIN"] = str(given.bin.resolve())
    print(f"| folder | jaxlib converts | {' | '.join(KINDS)} |")
    print("|---|" + "---:|" * (len(KINDS) + 1))
    for folder in given.folders:
        print(row(folder, given.values, given.list), flush=True)


if __name__ == "__main__":
    main()
