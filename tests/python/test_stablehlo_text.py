"""What is written of StableHLO is what MLIR prints of the same program, letter by letter."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

import tool
from test_stablehlo import PROGRAMS

tw = pytest.importorskip("tilewright", reason="the package is not built")

FOLDERS = sorted({path.parent for path in tool.FIXTURES.rglob("*.hlo")})
MLIR = sorted((tool.FIXTURES / "stablehlo").glob("*.mlir"))


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


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(tool.FIXTURES)))
def test_fixtures_are_printed_as_mlir_prints_them(folder: Path) -> None:
    compared, readable = 0, 0
    for path in sorted(folder.glob("*.hlo")):
        try:
            module = tw.Module.from_text(path.read_text())
            module.to_stablehlo()
        except tw.TilewrightError:
            continue  # no module, or none that StableHLO can say
        readable += 1
        count, found = differences(module)
        assert not found, f"{path}\n{found[0]}"
        compared += min(count, 1)
    # jaxlib refuses a few programs that HLO allows, for example integers of one bit with a sign.
    assert compared > 0 or readable < 5


@pytest.mark.parametrize("path", MLIR, ids=lambda path: path.stem)
def test_programs_of_jax_are_printed_as_mlir_prints_them(path: Path) -> None:
    compared, found = differences(tw.Module.from_text(path.read_text()))
    assert compared >= 2
    assert not found, found[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_lowered_programs_are_printed_as_mlir_prints_them(name: str) -> None:
    function, args = PROGRAMS[name]
    compared, found = differences(tw.Module.from_text(jax.jit(function).lower(*args).as_text()))
    assert compared >= 2
    assert not found, found[0]


def test_a_program_looks_like_what_jax_shows() -> None:
    lowered = jax.jit(lambda x, w: lax.dot(x, w).sum(0) * jnp.float32(0.1)).lower(
        jax.ShapeDtypeStruct((4, 8), jnp.float32), jax.ShapeDtypeStruct((8, 2), jnp.float32)
    )
    text = tw.Module.from_text(lowered.as_text()).to_stablehlo(debug_info=False)
    operations = [line.strip() for line in text.splitlines() if "stablehlo." in line]
    expected = [line.strip() for line in lowered.as_text().splitlines() if "stablehlo." in line]
    assert sorted(operation.split(" = ")[1].split("%")[0] for operation in operations) == sorted(
        operation.split(" = ")[1].split("%")[0] for operation in expected
    )
