#!/usr/bin/env python3
"""Writes an engine's file from what `tune` has measured on this machine.

    tilewright tune --list --json > decisions.json
    python benches/learned.py decisions.json --base ENGINE [--device WORDS] -o FILE

Each form that was measured says how a modelled ratio and a measured one differ.  The file is the base
with `ratio_error`, the factor within which nine in ten modelled ratios were, and with `least_gain` and
`least_small_gain`, the modelled ratios from which on a rewrite is kept: those that would have gained most
on what was measured, and no less than the base's, below which nothing was.  A saving of fewer than the
base's `small_saving_cycles` is small.  All decisions must be of one device and one version of the engine.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENGINES = Path(__file__).resolve().parents[1] / "crates" / "target" / "engines"
# With fewer forms, a key is left as the base has it.
FEWEST = 20


@dataclass(frozen=True)
class Sample:
    """A form that was measured beside its original."""

    modelled: float
    measured: float
    saved_cycles: float


def samples(decisions: list[dict[str, Any]], base: str, device: str) -> list[Sample]:
    """The default forms that were measured for an engine, on devices whose kind has these words: what the
    model alone would run."""
    found, machines = [], set()
    for decision in decisions:
        if not decision["options"].startswith(f"{base} ") or device not in decision["device"]:
            continue
        machines.add(f"{decision['device']}, {decision['engine']}")
        for form in decision["forms"]:
            if form["name"] == "default" and form["measured"] and form["modelled"]:
                found.append(Sample(form["modelled"], form["measured"], form["saved_cycles"] or 0.0))
    if len(machines) > 1:
        sys.exit("name one of these by --device: " + "; ".join(sorted(machines)))
    return found


def ratio_error(found: list[Sample]) -> float:
    """The factor within which nine in ten modelled ratios were the measured ones."""
    errors = sorted(math.exp(abs(math.log(one.modelled / one.measured))) for one in found)
    return errors[min(len(errors) - 1, math.ceil(0.9 * len(errors)) - 1)]


def least_gain(found: list[Sample], base: float) -> float:
    """The modelled ratio, `base` or more, from which on rewrites gain most if all others are left."""

    def gained(least: float) -> float:
        return sum(math.log(one.measured) for one in found if one.modelled >= least)

    most = max(one.modelled for one in found)
    bounds = {base, 1.01 * most, *(one.modelled for one in found if one.modelled > base)}
    # Of equals, the least.
    return max(bounds, key=lambda least: (gained(least), -least))


def keys(found: list[Sample], table: dict[str, float]) -> dict[str, float]:
    """What the samples say of the keys of an engine's file, for those of its base."""
    learned = {}
    small_saving_cycles = table.get("small_saving_cycles", 0.0)
    if len(found) >= FEWEST:
        learned["ratio_error"] = ratio_error(found)
    for key, part in {
        "least_gain": [one for one in found if one.saved_cycles >= small_saving_cycles],
        "least_small_gain": [one for one in found if one.saved_cycles < small_saving_cycles],
    }.items():
        if len(part) >= FEWEST:
            learned[key] = least_gain(part, table.get(key, 1.02))
    return learned


def main() -> None:
    """Reads decisions, and writes the file."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("decisions", type=Path, help="what `tilewright tune --list --json` printed")
    parser.add_argument("--base", required=True, help="the engine that the decisions are on")
    parser.add_argument("--device", default="", help="words of the device that counts")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    options = parser.parse_args()
    found = samples(json.loads(options.decisions.read_text()), options.base, options.device)
    table = tomllib.loads((ENGINES / f"{options.base}.toml").read_text())
    learned = keys(found, table)
    lines = [f"# From {len(found)} forms that were measured by `tilewright tune`.", f'base = "{options.base}"']
    lines += [f"{key} = {value:.3g}" for key, value in learned.items()]
    options.output.write_text("\n".join(lines) + "\n")
    if not learned:
        sys.exit(f"{len(found)} forms were measured on {options.base}, and it takes {FEWEST}: nothing is learned")


if __name__ == "__main__":
    main()
