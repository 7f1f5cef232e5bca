"""The page of `tilewright graph` in a real browser: Chromium, where it is installed.

A script at the end of the page plays a user and writes what it saw into the document, which
Chromium prints. So no driver of browsers is needed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import tool

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --window-size=1400,900 "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is optional, and not installed: apt-get install chromium"
)

PLAY = """
const seen = {};
const said = (name, value) => { seen[name] = value; };
const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const nodes = () => document.querySelectorAll("#world .node").length;
const panelText = () => byId("panel").textContent;
window.addEventListener("error", (event) => said("error", event.message));
try { %s } catch (error) { said("error", error.stack); }
const out = document.createElement("pre");
out.id = "seen";
out.textContent = JSON.stringify(seen);
document.body.appendChild(out);
"""


def play(page: Path, script: str, folder: Path) -> dict:
    """What a script sees on a page, with the page's own errors under `error`."""
    text = page.read_text(encoding="utf-8")
    catcher = "<script>window.failed = []; window.onerror = (m) => failed.push(m);</script>"
    text = text.replace("<head>", "<head>" + catcher, 1)
    script = "said('failed', window.failed);" + script
    played = folder / f"played_{page.name}"
    played.write_text(
        text.replace("</body>", f"<script>{PLAY % script}</script></body>"), encoding="utf-8"
    )
    profile = folder / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", played.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    plain = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    seen = json.loads(plain)
    assert "error" not in seen and seen["failed"] == [], seen
    return seen


def page_of(source: Path, folder: Path, *options: str) -> Path:
    out = folder / f"{source.stem}.html"
    tool.tilewright("graph", source, "-o", out, *options)
    return out


GROUP_NORM = tool.FIXTURES / "real/group_norm_nhwc_4x64x64x320.hlo"


def test_a_page_opens(binary: Path, tmp_path: Path) -> None:
    seen = play(
        page_of(GROUP_NORM, tmp_path),
        """
        said("ready", document.body.dataset.ready);
        said("nodes", nodes());
        said("all", scene.sides[0].nodes.length);
        said("title", document.title);
        said("requests", performance.getEntriesByType("resource").length);
        """,
        tmp_path,
    )
    assert seen["ready"] == "yes" and seen["title"] == "jit_group_norm_nhwc"
    assert seen["nodes"] == seen["all"] > 20
    # The page is one file: nothing else is loaded.
    assert seen["requests"] == 0


def test_boxes_close_and_open(binary: Path, tmp_path: Path) -> None:
    seen = play(
        page_of(GROUP_NORM, tmp_path),
        """
        const all = nodes();
        const box = scene.sides[0].boxes.findIndex((one) => one.kind === "call");
        const bar = [...document.querySelectorAll(".frame.call > .bar")][0];
        bar.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        said("closed", [nodes() < all, document.querySelectorAll(".closed").length]);
        document.querySelector(".closed").dispatchEvent(new MouseEvent("click", { bubbles: true }));
        said("opened", nodes() === all);
        press("C");
        said("all closed", document.querySelectorAll(".frame").length);
        press("O");
        said("open again", nodes() > 0);
        """,
        tmp_path,
    )
    assert seen["closed"] == [True, 1] and seen["opened"] is True
    assert seen["all closed"] == 1 and seen["open again"] is True


def test_search_and_panel(binary: Path, tmp_path: Path) -> None:
    seen = play(
        page_of(GROUP_NORM, tmp_path, "--after"),
        """
        byId("search").value = "reshape.2";
        byId("search").dispatchEvent(new Event("input"));
        said("first", byId("hits").children[0].textContent);
        goTo(0);
        said("panel", panelText());
        said("marked", document.querySelectorAll(".selected").length);
        press("j");
        said("user", byId("panel").querySelector("h2").textContent);
        press("Escape");
        said("notes", panelText());
        press("m");
        said("changed", panelText());
        press("?");
        said("help", byId("help").open);
        """,
        tmp_path,
    )
    assert seen["first"].startswith("%reshape.2 ")
    for part in ("before · reshape", "padded 12.8 times", "moves data", "40.0 MiB; with padding 512"):
        # 4 images take half of what 8 do.
        part = part.replace("40.0 MiB; with padding 512", "20.0 MiB; with padding 256 MiB")
        assert part in seen["panel"], seen["panel"]
    assert "Note 1: reshape-out-of-region" in seen["panel"]
    assert seen["marked"] == 1 and seen["user"].startswith("%reduce_sum")
    assert seen["notes"].startswith("Rewrites") and "Note 1" in seen["changed"]
    assert seen["help"] is True


def test_names_stay_text(binary: Path, tmp_path: Path) -> None:
    source = tmp_path / "hostile.hlo"
    source.write_text(
        """HloModule hostile

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] custom-call(x), custom_call_target="</script><img src=x onerror=bad()>"
  ROOT z = f32[4] negate(y), metadata={op_name="</script><script>bad()</script>/neg"}
}
"""
    )
    seen = play(
        page_of(source, tmp_path),
        """
        select(0, 1, true);
        said("panel", panelText());
        said("images", document.images.length);
        said("scripts", document.scripts.length);
        """,
        tmp_path,
    )
    assert "</script><script>bad()</script>/neg" in seen["panel"]
    # The page's four scripts, and the two of this test.
    assert (seen["images"], seen["scripts"]) == (0, 6)


def scopes_of(count: int) -> str:
    """A module of many instructions in scopes within scopes."""
    lines = ["HloModule large", "", "ENTRY e {", "  x0 = f32[64,64] parameter(0)"]
    for i in range(1, count + 1):
        scope = f"jit(f)/stage{i * 8 // (count + 1)}/block{i * 160 // (count + 1)}/part{i % 3}"
        root = "ROOT " if i == count else ""
        old = f"x{max(0, i - 1 - (i * 7) % 90)}"
        op = f"add(x{i - 1}, {old})"
        lines.append(
            f'  {root}x{i} = f32[64,64] {op}, metadata={{op_name="{scope}/add" '
            f'source_file="model.py" source_line={i % 500 + 1}}}'
        )
    return "\n".join([*lines, "}", ""])


def test_a_large_module_opens_folded(binary: Path, tmp_path: Path) -> None:
    source = tmp_path / "large.hlo"
    source.write_text(scopes_of(20_000))
    seen = play(
        page_of(source, tmp_path),
        """
        said("all", scene.sides[0].nodes.length);
        said("elements", document.querySelectorAll("#world *").length);
        select(0, 12345, true);
        said("found", byId("panel").querySelector("h2").textContent);
        said("shown", document.querySelectorAll(".selected").length);
        said("then", document.querySelectorAll("#world *").length);
        """,
        tmp_path,
    )
    assert seen["all"] == 20_000
    # What is closed is not drawn.
    assert seen["elements"] < 2000 and seen["then"] < 8000
    assert seen["found"].startswith("%x123") and seen["shown"] == 1


def layers(count: int) -> str:
    """A module whose layers each sum groups that a reshape splits off."""
    lines = []
    for layer in range(count):
        scope = f'op_name="jit(step)/Net/Norm_{layer}/%s" source_file="net.py" source_line={layer + 1}'
        lines += [
            f"  x{layer} = f32[4,32,32,320] parameter({layer})",
            f"  groups{layer} = f32[4,32,32,32,10] reshape(x{layer}), metadata={{{scope % 'reshape'}}}",
            f"  sum{layer} = f32[4,32] reduce(groups{layer}, zero), dimensions={{1,2,4}}, to_apply=add, "
            f"metadata={{{scope % 'reduce_sum'}}}",
        ]
    shapes = ", ".join(["f32[4,32]"] * count)
    results = ", ".join(f"sum{layer}" for layer in range(count))
    return (
        "HloModule net\n\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        "  ROOT sum = f32[] add(a, b)\n}\n\nENTRY main {\n  zero = f32[] constant(0)\n"
        + "\n".join(lines)
        + f"\n  ROOT all = ({shapes}) tuple({results})\n}}\n"
    )


@pytest.mark.parametrize("count", [1, 2, 12])
def test_a_report_shows_bars_and_pictures_of_layers(
    binary: Path, tmp_path: Path, count: int
) -> None:
    source, page = tmp_path / "net.hlo", tmp_path / "net.html"
    source.write_text(layers(count))
    tool.tilewright("report", source, "-o", page, "--target", "tpu-like")
    # The page allows no scripts, and the one that looks at it is one.
    page.write_text(re.sub('<meta http-equiv="Content-Security-Policy".*?>', "", page.read_text()))
    seen = play(
        page,
        """
        window.addEventListener("load", () => {
            const images = [...document.images];
            said("sizes", images.map((image) => [image.naturalWidth, image.naturalHeight]));
            const plot = atob(images[0].src.split(",")[1]);
            const bars = [...plot.matchAll(/<rect [^>]*height="(-?\\d+)"[^>]*fill="#(969EA8|146EBE)"/g)];
            said("bars", bars.map((bar) => Number(bar[1])));
            said("text", document.body.textContent);
            document.getElementById("seen").textContent = JSON.stringify(seen);
        });
        """,
        tmp_path,
    )
    # A bar before and one after for each layer, none of which is a line.
    assert len(seen["bars"]) >= 2 * min(count, 10) and min(seen["bars"]) >= 5, seen["bars"]
    # The plot, and pictures before and after of some layers: none is a strip.
    assert len(seen["sizes"]) >= 3
    assert all(width > 100 and height > 60 for width, height in seen["sizes"]), seen["sizes"]
    assert all(f"Norm_{layer}" in seen["text"] for layer in range(min(count, 10)))
