"""Packs the Python package and the library that the tests in Rust have built into a wheel.

`.ci/wheel.py LIBRARY OUT`; prints the path of the wheel. Maturin builds what users install; it would compile
the workspace anew here, since the tests give some dependencies more features.
"""

from __future__ import annotations

import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "crates/python"


def main(library: Path, out: Path) -> Path:
    """Writes the wheel, and returns its path."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    name, version = project["name"], workspace["package"]["version"]
    info = f"{name}-{version}.dist-info"
    tag = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_')}"
    files: dict[str, bytes] = {f"{name}/_core.abi3.so": library.read_bytes()}
    sources = PACKAGE / "python"
    for path in sorted(sources.rglob("*")):
        if path.suffix in (".py", ".pyi", ".typed"):
            files[str(path.relative_to(sources))] = path.read_bytes()
    groups = project["entry-points"].items()
    points = "".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in groups
    )
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: ci\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": points,
    }
    files |= {f"{info}/{file}": text.encode() for file, text in texts.items()}
    record = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    files[f"{info}/RECORD"] = record.encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, data in files.items():
            archive.writestr(file, data)
    return wheel


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), Path(sys.argv[2])))
