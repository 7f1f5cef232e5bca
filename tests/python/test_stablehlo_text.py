"""What is written of StableHLO is what MLIR prints of the same program, letter by letter."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import tilewright as tw
from jax import lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

import tool
from entries import check_files
from test_stablehlo import PROGRAMS, lowered

# All folders of modules but `verify` and `text/err`, whose files are none.
FOLDERS = (
    "devices",
    "foreign",
    "lower",
    "models",
    "ops",
    "real",
    "rewrite",
    "sharded",
    "text/ok",
    "torch",
)
MLIR = sorted((tool.FIXTURES / "stablehlo").glob("*.mlir"))
# StableHLO has no such operation, or has it in fewer types; and it has no constants without values, and no
# integers of one bit with a sign.
UNSAYABLE = {
    "ops/bitcast/from_tiles",
    "ops/bitcast/tiles",
    "ops/scaled-dot/f4e2m1fn_f8e5m2_bf16",
    "ops/scaled-dot/f8e4m3fn_f8e4m3fn_f32",
}
MISSING = re.compile(r"constant\(\{\.\.\.\}\)|\bs1\[")
# jaxlib refuses it, and some narrow numbers.
REFUSED = {"rewrite/control-flow/predicate_of_branches"}


def parsed(text: str) -> ir.Module | None:
    """The program in a text, in the current context; `None` if jaxlib refuses it."""
    try:
        return ir.Module.parse(text)
    except ir.MLIRError:
        return None


def differences(module: tw.Module) -> tuple[int, list[str]]:
    """How many texts of a module jaxlib reads, and the first differing line of those that it
    prints otherwise."""
    forms = [(False, {}), (True, {"enable_debug_info": True})]
    compared, found = 0, []
    for debug_info, options in forms:
        written = module.to_stablehlo(debug_info=debug_info)
        # The generic form is read by other code than the pretty one.
        generic = module.to_stablehlo(debug_info=debug_info, generic=True)
        for source in [written] if debug_info else [generic, written]:
            with mlir.make_ir_context():
                read = parsed(source)
                if read is None:
                    continue
                printed = read.operation.get_asm(**options).rstrip()
            if debug_info and "loc(" not in written:
                continue
            compared += 1
            lines = zip(written.rstrip().split("\n"), printed.split("\n"), strict=False)
            first = next((f"{ours}\n{theirs}" for ours, theirs in lines if ours != theirs), None)
            if first is not None:
                found.append(first)
            elif written.rstrip() != printed:
                found.append("one text is longer")
    return compared, found


def test_all_folders_of_modules_are_named() -> None:
    found = {path.relative_to(tool.FIXTURES) for path in tool.FIXTURES.rglob("*.hlo")}
    named = {*FOLDERS, "verify", "text/err"}
    assert {str(path) for path in found if not named & set(map(str, path.parents))} == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_fixtures_are_printed_as_mlir_prints_them(folder: str) -> None:
    """All that StableHLO can say and jaxlib reads, which is all but a few."""

    def check(path: Path) -> None:
        name = tool.fixture_id(path)
        module = tw.Module.from_file(path)
        if name in UNSAYABLE or MISSING.search(path.read_text()):
            with pytest.raises(tw.TilewrightError, match="cannot be written as StableHLO"):
                module.to_stablehlo()
            return
        compared, found = differences(module)
        assert not found, found[0]
        assert compared or name in REFUSED or "narrow" in path.stem, "jaxlib does not read it"

    check_files(sorted((tool.FIXTURES / folder).rglob("*.hlo")), check)


@pytest.mark.parametrize("path", MLIR, ids=lambda path: path.stem)
def test_programs_of_jax_are_printed_as_mlir_prints_them(path: Path) -> None:
    compared, found = differences(tw.Module.from_text(path.read_text()))
    assert compared >= 2
    assert not found, found[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_lowered_programs_are_printed_as_mlir_prints_them(name: str) -> None:
    compared, found = differences(tw.Module.from_text(lowered(name).as_text()))
    assert compared >= 2
    assert not found, found[0]


def test_a_program_looks_like_what_jax_shows() -> None:
    program = jax.jit(lambda x, w: lax.dot(x, w).sum(0) * jnp.float32(0.1)).lower(
        jax.ShapeDtypeStruct((4, 8), jnp.float32), jax.ShapeDtypeStruct((8, 2), jnp.float32)
    )
    text = tw.Module.from_text(program.as_text()).to_stablehlo(debug_info=False)
    operations = [line.strip() for line in text.splitlines() if "stablehlo." in line]
    expected = [line.strip() for line in program.as_text().splitlines() if "stablehlo." in line]
    assert sorted(operation.split(" = ")[1].split("%")[0] for operation in operations) == sorted(
        operation.split(" = ")[1].split("%")[0] for operation in expected
    )
