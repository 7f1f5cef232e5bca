"""Makes the pictures of the book: what a terminal shows as SVG, pages as seen by Chromium.

    python docs/pictures/make.py [--tilewright target/release/tilewright] [NAME ...]

It needs JAX for `program.py`, and `chromium` for the pages. Look at every picture before you commit it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Of a terminal, in pixels.
SIZE, ADVANCE, LINE, MARGIN = 14, 8.43, 20, 16
PAGE, TEXT, PROMPT = "#15181c", "#e3e6ea", "#8ab4f8"
COLOURS = {
    "30": "#5c6570",
    "31": "#ff8a80",
    "32": "#7fd88f",
    "33": "#f4c063",
    "34": "#8ab4f8",
    "35": "#d3a4f9",
    "36": "#76d7d0",
    "37": "#e3e6ea",
}


def spans(line: str) -> list[tuple[str, str]]:
    """The texts of a line with ANSI escapes, each with its attributes of SVG."""
    found: list[tuple[str, str]] = []
    colour, bold, faint = "", False, False
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not piece.startswith("\x1b"):
            weight = ' font-weight="bold"' if bold else ""
            dim = ' opacity="0.7"' if faint else ""
            found.append((piece, (f' fill="{colour}"' if colour else "") + weight + dim))
            continue
        for code in piece[2:-1].split(";"):
            if code in ("", "0"):
                colour, bold, faint = "", False, False
            elif code in ("1", "2"):
                bold, faint = bold or code == "1", faint or code == "2"
            elif code[-1] in "01234567" and code[:-1] in ("3", "9"):
                colour = COLOURS["3" + code[-1]]
    return [(text, attributes) for text, attributes in found if text]


def folded(line: str, columns: int) -> list[str]:
    """A line in rows of at most this width, which end at spaces where there are any."""
    rows, row, width = [], "", 0
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b"):
            row += piece
            continue
        while width + len(piece) > columns:
            end = piece.rfind(" ", 0, columns - width + 1)
            end = end + 1 if end > 0 else columns - width
            rows.append(row + piece[:end])
            piece = piece[end:]
            row, width = "", 0
        row += piece
        width += len(piece)
    return [*rows, row]


def terminal(name: str, title: str, columns: int, session: list[tuple[str, str]]) -> None:
    """Writes commands and their output as an SVG."""
    lines: list[str] = []
    for command, output in session:
        lines += folded(f"\x1b[34m$\x1b[0m \x1b[1m{command}\x1b[0m", columns)
        lines += [row for line in output.splitlines() for row in folded(line, columns)]
    width, height = columns * ADVANCE + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    rows = []
    for number, line in enumerate(lines):
        y, column = MARGIN + number * LINE + SIZE, 0
        for text, attributes in spans(line):
            # Each text has its place and length, whatever the font.
            x, length = MARGIN + column * ADVANCE, len(text) * ADVANCE
            column += len(text)
            if text.strip():
                # Spaces at the ends and in a row would be left out.
                kept = text.replace(" ", "\u00a0")
                rows.append(
                    f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}"'
                    f' lengthAdjust="spacingAndGlyphs"{attributes}>{escape(kept)}</text>'
                )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}"'
        f' viewBox="0 0 {width:.0f} {height}" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{PAGE}"/>\n'
        f'<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"'
        f' font-size="{SIZE}" fill="{TEXT}">\n' + "\n".join(rows) + "\n</g>\n</svg>\n"
    )
    (HERE / f"{name}.svg").write_text(svg, "utf-8")


def photograph(name: str, page: Path, width: int, height: int) -> None:
    """Writes what Chromium shows of a page as a PNG."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("there is no chromium")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += ["--no-first-run", "--disable-background-networking", "--disable-sync"]
        command += ["--disable-component-update", "--disable-quic", f"--user-data-dir={profile}"]
        command += [f"--window-size={width},{height}", f"--screenshot={HERE / name}.png"]
        subprocess.run([*command, page.as_uri()], check=True, capture_output=True)


class Maker:
    """Makes pictures in an empty folder."""

    def __init__(self, tilewright: str, folder: Path) -> None:
        self.tilewright, self.folder = tilewright, folder
        for name in ("before.hlo", "after.hlo"):
            shutil.copy(HERE / name, folder)
        shutil.copy(ROOT / "fixtures/foreign/gpt2_small_step.hlo", folder / "step.hlo")

    def run(self, command: str, shown: str | None = None) -> tuple[str, str]:
        """A command of a shell, as it is shown, and what it prints, in colours."""
        real = command.replace("tilewright ", f"{self.tilewright} --color always ", 1)
        done = subprocess.run(
            real, shell=True, cwd=self.folder, text=True, stdout=-1, stderr=subprocess.STDOUT
        )
        return shown or command, done.stdout

    def program(self) -> None:
        """Writes the StableHLO of `program.py`."""
        lowered = [sys.executable, str(HERE / "program.py")]
        text = subprocess.run(lowered, check=True, capture_output=True, text=True).stdout
        (self.folder / "step.mlir").write_text(text, "utf-8")

    def diff(self) -> None:
        title = "The differences of two modules, with carets."
        terminal("diff", title, 100, [self.run("tilewright diff before.hlo after.hlo")])

    def diff_page(self) -> None:
        self.run("tilewright diff before.hlo after.hlo --html d.html")
        photograph("diff_page", self.folder / "d.html", 1200, 640)

    def explain(self) -> None:
        self.program()
        title = "Three layers that were rewritten, and what each saves."
        command = "tilewright opt step.mlir --explain -o better.mlir"
        terminal("explain", title, 100, [self.run(command)])

    def reduce(self) -> None:
        title = "A training step of 1,658 instructions becomes a module of 6."
        command = "tilewright reduce step.hlo --keep \"grep -q 'scatter(' {}\""
        terminal("reduce", title, 100, [self.run(command), self.run("cat step.reduced.hlo")])

    def report(self) -> None:
        self.program()
        self.run("tilewright report step.mlir --check --max-steps 2000000000 -o report.html")
        photograph("report", self.folder / "report.html", 1100, 1090)


def main() -> None:
    names = ["diff", "diff_page", "explain", "reduce", "report"]
    parser = argparse.ArgumentParser(description="Makes the pictures of the book.")
    parser.add_argument("--tilewright", default=str(ROOT / "target/release/tilewright"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    asked = parser.parse_args()
    for name in asked.names or names:
        if name not in names:
            parser.error(f"there is no picture {name}")
        with tempfile.TemporaryDirectory() as folder:
            getattr(Maker(str(Path(asked.tilewright).resolve()), Path(folder)), name)()


if __name__ == "__main__":
    main()
