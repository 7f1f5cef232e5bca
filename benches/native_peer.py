"""Reductions of the crate `native` beside those of everybody else, and the speed of reading.

    cargo build --release -p tilewright-benches --bin patterns
    pip install jax==0.12.0.1 numpy==2.5.5 torch==2.15.0
    python benches/native_peer.py [PATTERN ...] [--types f32,s32] [--threads 1] [--eigen PATH]

The peers are NumPy, PyTorch, XLA:CPU, the crate `ndarray` and Eigen; one that is not installed is
left out. Every number is the time divided by the time in which as many threads read the array.

A pattern is `DIMS/AXES`, or `DIMS/AXES/ORDER` for a view whose dims are those of memory in another
order: `4096x1024/0/1,0` sums rows of 4096x1024 by way of its transpose. XLA has no such views, so
its program transposes.

Each peer is a process of its own, with as many CPUs as threads. All are asked in turn for each
pattern, in several rounds, and time alike: the least of several runs after one that is not counted,
with the array in place and the result's memory found anew. Arrays begin at boundaries of huge pages,
and all find memory in such pages.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = TARGET / "release/patterns"

PATTERNS = [
    "16777216/0",
    "4096x1024/0",
    "4096x1024/1",
    "256x16384/0",
    "256x16384/1",
    "65536x64/0",
    "65536x64/1",
    "32x131072/0",
    "32x131072/1",
    "1048576x4/0",
    "1048576x4/1",
    "500009x7/0",
    "500009x7/1",
    "1400011x3/1",
    "800011x5/1",
    "300007x13/1",
    "100003x40/1",
    "8x64x64x32x4/1,2,4",
    "8x64x64x32x4/1,3",
    "4x28x28x32x16/1,2,4",
    "16x56x56x8x8/1,2,4",
    "16x32x16x32x16/0,2,4",
    "16x32x16x32x16/1,3",
    "32x128x1024/0,2",
    "32x128x1024/1",
    "64x256x256/0",
    "64x256x256/0,1",
    "64x256x256/1,2",
    "127x257x129/1",
    "2100x2000/0/1,0",
]
# The least memory for an array, in bytes; results are smaller.
LEAST_ROOM = 1 << 24
# The names of types in NumPy and in C++.
TYPES = {
    "f32": ("float32", "float"),
    "f64": ("float64", "double"),
    "bf16": ("bfloat16", "Eigen::bfloat16"),
    "s32": ("int32", "std::int32_t"),
}
FOLDS = {"sum": "sum", "maximum": "maximum", "place": "place of the maximum"}
# Columns of the tables.
NAMES = ["native", "NumPy", "PyTorch", "XLA:CPU", "ndarray", "Eigen"]
# Those that are processes of this script, and their modules.
MODULES = {"NumPy": "numpy", "PyTorch": "torch", "XLA:CPU": "jax"}

Works = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Pattern:
    """Dims in memory, the axes that are reduced, and the dims' order in the view."""

    text: str
    dims: tuple[int, ...]
    axes: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Reads `4096x1024/0` or `4096x1024/0/1,0`."""
        dims, axes, *order = (
            tuple(int(number) for number in re.split("[x,]", part))
            for part in text.split("/")
        )
        return cls(text, dims, axes, order[0] if order else tuple(range(len(dims))))

    def __str__(self) -> str:
        dims = [self.dims[dim] for dim in self.order]
        view = "" if self.order == tuple(range(len(dims))) else " transposed"
        return f"`{dims}`{view}, {','.join(map(str, self.axes))}".replace(
            ", ", ",", len(dims) - 1
        )


def numpy_works(array: np.ndarray[Any, Any], pattern: Pattern) -> Works:
    """What NumPy does."""
    view, axes, dtype = array.transpose(pattern.order), pattern.axes, array.dtype
    return {
        "sum": lambda: view.sum(axis=axes, dtype=dtype),
        "maximum": lambda: view.max(axis=axes),
        "place": lambda: view.argmax(axis=axes[0]),
    }


def torch_works(array: np.ndarray[Any, Any], pattern: Pattern) -> Works:
    """What PyTorch does."""
    torch: Any = importlib.import_module("torch")
    axes = pattern.axes
    if array.dtype == "bfloat16":
        tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(array)
    view = tensor.permute(pattern.order)
    return {
        "sum": lambda: torch.sum(view, dim=axes, dtype=view.dtype),
        "maximum": lambda: torch.amax(view, dim=axes),
        "place": lambda: torch.argmax(view, dim=axes[0]),
    }


def xla_works(array: np.ndarray[Any, Any], pattern: Pattern) -> Works:
    """What XLA:CPU does."""
    jax: Any = importlib.import_module("jax")
    # Else arrays and places have no 64 bits; with it, sums of `s32` would.
    jax.config.update("jax_enable_x64", array.dtype == np.float64)
    placed = jax.device_put(array)
    axes, order = pattern.axes, pattern.order
    functions = {
        "sum": lambda x: x.transpose(order).sum(axes),
        "maximum": lambda x: x.transpose(order).max(axes),
        "place": lambda x: x.transpose(order).argmax(axes[0]),
    }

    def work(function: Callable[[Any], Any]) -> Callable[[], object]:
        compiled = jax.jit(function)
        return lambda: compiled(placed).block_until_ready()

    return {fold: work(function) for fold, function in functions.items()}


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of an array that begins at a boundary of huge pages."""
    boundary = 1 << 21
    room = np.empty(max(array.nbytes + boundary, LEAST_ROOM), np.uint8)
    begin = -room.ctypes.data % boundary
    copy = room[begin : begin + array.nbytes].view(array.dtype)
    copy[:] = array
    return copy


def least(work: Callable[[], object], turns: int, seconds: float) -> float:
    """The least time of several, in seconds."""
    work()
    begin = time.perf_counter()
    best = float("inf")
    for turn in range(turns):
        start = time.perf_counter()
        work()
        end = time.perf_counter()
        best = min(best, end - start)
        if turn > 0 and end - begin > seconds:
            break
    return best


def answer(name: str, kind: str, threads: int) -> None:
    """Reads lines of a pattern, turns and seconds, and times them, as the example does."""
    module = importlib.import_module(MODULES[name])
    if name == "PyTorch":
        module.set_num_threads(threads)
    works_of = {"NumPy": numpy_works, "PyTorch": torch_works, "XLA:CPU": xla_works}
    dtype = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    if kind != "bf16":
        dtype = np.dtype(TYPES[kind][0])
    text, works = "", Works()
    for line in sys.stdin:
        wanted, turns, seconds = line.split()
        pattern = Pattern.parse(wanted)
        if wanted != text:
            places = np.arange(np.prod(pattern.dims), dtype=np.int32)
            array = aligned((places % 1009 - 504).astype(dtype)).reshape(pattern.dims)
            text, works = wanted, works_of[name](array, pattern)
        for fold, work in works.items():
            if fold != "place" or len(pattern.axes) == 1:
                print(name, fold, least(work, int(turns), float(seconds)), sep="\t")
        print(flush=True)


class Peer:
    """A process that times reductions of one type."""

    def __init__(self, command: list[str]) -> None:
        # Arrays come from the system, in huge pages, as NumPy's own do. Results are found in memory that
        # was used before.
        settings = {"hugetlb": 1, "mmap_threshold": LEAST_ROOM, "trim_threshold": 1 << 28}
        tunables = (f"glibc.malloc.{name}={value}" for name, value in settings.items())
        environment = dict(os.environ, GLIBC_TUNABLES=":".join(tunables))
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        # Others are not to be timed while this one starts.
        list(self.ask("64x64/0", 1, 0.0))

    def ask(
        self, pattern: str, turns: int, seconds: float
    ) -> Iterator[tuple[str, str, float]]:
        """Who takes how many seconds for which fold."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{pattern} {turns} {seconds}\n")
        self.process.stdin.flush()
        # An empty line ends an answer.
        while (line := self.process.stdout.readline()) != "\n":
            if not line:
                raise SystemExit(f"{self.process.args!r} failed at {pattern}")
            who, fold, found = line.split("\t")
            yield who, fold, float(found)

    def end(self) -> None:
        """Lets the process end."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def eigen_programs(path: Path, kinds: list[str]) -> dict[str, Path]:
    """Compiles reductions by Eigen of each type; none without its headers."""
    if not (path / "unsupported/Eigen/CXX11/Tensor").exists():
        print(
            f"Eigen is left out: no headers in {path} (`--eigen PATH`).",
            file=sys.stderr,
        )
        return {}
    source = ROOT / "benches/eigen_reduce.cpp"
    folder = TARGET / "native_peer"
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-O3", "-DNDEBUG", "-march=native", "-std=c++17", "-pthread", "-w"]
    compilers = {}
    for kind in kinds:
        program = folder / f"eigen_{kind}"
        files = ["-I", str(path), str(source), "-o", str(program)]
        element = f"-DELEMENT={TYPES[kind][1]}"
        compilers[program] = subprocess.Popen(["g++", *flags, element, *files])
    failed = [program for program, compiler in compilers.items() if compiler.wait()]
    if failed:
        raise SystemExit("Eigen's program does not compile")
    return dict(zip(kinds, compilers))


def eigen_version(path: Path) -> str:
    """The version in Eigen's headers."""
    files = ["Eigen/Version", "Eigen/src/Core/util/Macros.h"]
    text = "".join(
        (path / file).read_text() for file in files if (path / file).exists()
    )
    parts = dict(re.findall(r"#define EIGEN_(\w+)_VERSION (\d+)\s", text))
    if int(parts["MAJOR"]) >= 5:
        return f"{parts['MAJOR']}.{parts['MINOR']}.{parts['PATCH']}"
    return f"{parts['WORLD']}.{parts['MAJOR']}.{parts['MINOR']}"


def versions(modules: dict[str, str], eigen: Path | None) -> str:
    """The peers' versions."""
    metadata = importlib.import_module("importlib.metadata")
    found = []
    for name, module in modules.items():
        package = "jaxlib" if module == "jax" else module
        found.append(f"{name} {metadata.version(package)}")
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    found += [f"ndarray {p['version']}" for p in packages if p["name"] == "ndarray"]
    if eigen:
        found.append(f"Eigen {eigen_version(eigen)}")
    return ", ".join(found)


def processor() -> str:
    """The CPU's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return "an unknown CPU"


# The seconds of each fold by each peer.
Times = dict[tuple[str, str], float]


def measure(
    arguments: argparse.Namespace, kind: str, threads: int, programs: dict[str, Path]
) -> dict[str, Times]:
    """Times all patterns on one type and number of threads."""
    mine = [sys.executable, __file__]
    peers = [Peer([str(PROGRAM), kind, str(threads)])]
    peers += [
        Peer([*mine, "--worker", name, "--types", kind, "--threads", str(threads)])
        for name in arguments.modules
    ]
    if kind in programs:
        peers.append(Peer([str(programs[kind]), str(threads)]))
    found: dict[str, Times] = {}
    for pattern in arguments.patterns:
        times: Times = found.setdefault(pattern, {})
        for _ in range(arguments.rounds):
            for peer in peers:
                seconds = arguments.seconds / arguments.rounds
                for who, fold, took in peer.ask(pattern, arguments.turns, seconds):
                    times[who, fold] = min(took, times.get((who, fold), took))
        print(kind, f"{threads} CPUs", pattern, file=sys.stderr)
    for peer in peers:
        peer.end()
    return found


@dataclass
class Row:
    """A pattern's times in a table."""

    pattern: Pattern
    reading: float
    # By name; NaN for what a peer does not have.
    times: dict[str, float]

    @property
    def best(self) -> str:
        """The fastest peer."""
        others = {name: time for name, time in self.times.items() if not isnan(time)}
        others.pop("native")
        return min(others, key=lambda name: others[name])

    @property
    def ratio(self) -> float:
        """The fastest peer's time divided by ours: above 1 where ours is faster."""
        return self.times[self.best] / self.times["native"]

    def __str__(self) -> str:
        cells = [
            f"{self.times[name] / self.reading:.2f}" if self.times[name] > 0 else "–"
            for name in NAMES
        ]
        return (
            f"| {self.pattern} | {' | '.join(cells)} | {self.ratio:.2f} ({self.best}) |"
        )


def rows_of(found: dict[str, Times], fold: str) -> list[Row]:
    """The patterns that have this fold."""
    return [
        Row(
            Pattern.parse(pattern),
            times["read", "all"],
            {name: times.get((name, fold), nan) for name in NAMES},
        )
        for pattern, times in found.items()
        if ("native", fold) in times
    ]


def summary(found: dict[str, Times], rows: list[Row], fold: str) -> str:
    """A line of a table in few words."""
    fastest = sum(row.ratio > 1 / 1.05 for row in rows)
    median = statistics.median(row.times["native"] / row.reading for row in rows)
    worst = min(rows, key=lambda row: row.ratio)
    line = f"fastest within 5 % on {fastest} of {len(rows)}; median of native / reading {median:.2f}; "
    line += f"worst of peer / native {worst.ratio:.2f} ({worst.best}, {worst.pattern})"
    started = [
        times["started", fold] / times["native", fold]
        for times in found.values()
        if ("started", fold) in times
    ]
    if started:
        line += f"; with threads started anew {statistics.median(started):.2f} times as long"
    return line


def show(results: dict[tuple[str, int], dict[str, Times]], worst: int) -> None:
    """Prints tables, a line for each, and the patterns farthest behind."""
    lines, behind = [], []
    for (kind, threads), found in results.items():
        for fold, name in FOLDS.items():
            rows = rows_of(found, fold)
            if not rows:
                continue
            title = f"{kind}, {name}, {threads} thread{'s' * (threads > 1)}"
            print(
                f"\n**{title}**\n\n| array, axes | {' | '.join(NAMES)} | best peer / native |"
            )
            print("|---|" + "---:|" * (len(NAMES) + 1))
            print(*rows, sep="\n")
            lines.append(f"- {title}: {summary(found, rows, fold)}")
            behind += [
                (row.ratio, f"{title}, {row.pattern}: {row.best}") for row in rows
            ]
    print("\n**Summary**\n", *lines, sep="\n")
    print("\n**Farthest behind**, best peer / native\n")
    for ratio, what in sorted(behind)[:worst]:
        print(f"- {ratio:.2f} {what}")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("patterns", nargs="*", default=PATTERNS)
    parser.add_argument(
        "--types", type=lambda text: text.split(","), default=list(TYPES)
    )
    parser.add_argument(
        "--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2]
    )
    parser.add_argument(
        "--turns", type=int, default=25, help="at most this many in each round"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.1, help="about these for each number"
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--eigen", type=Path, default=Path("/usr/include/eigen3"))
    parser.add_argument("--lines", type=Path, help="a file for all seconds, one a line")
    parser.add_argument(
        "--worst", type=int, default=15, help="how many patterns that are behind"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measures everything that is asked for."""
    arguments = parse()
    if arguments.worker:
        answer(arguments.worker, arguments.types[0], arguments.threads[0])
        return
    arguments.modules = {}
    for name, module in MODULES.items():
        if importlib.util.find_spec(module):
            arguments.modules[name] = module
        else:
            print(f"{name} is left out: no module {module}.", file=sys.stderr)
    if not PROGRAM.exists():
        raise SystemExit(f"build {PROGRAM} first:\n{__doc__}")
    programs = eigen_programs(arguments.eigen, arguments.types)
    names = versions(arguments.modules, arguments.eigen if programs else None)
    print(f"Time / time of reading, on {processor()}, {os.cpu_count()} CPUs; {names}.")
    print(
        "NumPy and ndarray have one thread. Above 1 in the last column, native is the fastest."
    )
    cpus = sorted(os.sched_getaffinity(0))
    results = {}
    for kind in arguments.types:
        for threads in arguments.threads:
            # Processes that are started have these CPUs, too.
            os.sched_setaffinity(0, cpus[:threads])
            results[kind, threads] = measure(arguments, kind, threads, programs)
    if arguments.lines:
        lines = [
            "\t".join([kind, str(threads), pattern, who, fold, f"{seconds:.3e}"])
            for (kind, threads), found in results.items()
            for pattern, times in found.items()
            for (who, fold), seconds in times.items()
        ]
        arguments.lines.write_text("\n".join(lines) + "\n")
    show(results, arguments.worst)


if __name__ == "__main__":
    main()
