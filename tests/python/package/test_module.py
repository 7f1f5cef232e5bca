"""Modules: reading, writing, equality."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tilewright as tw

TEXT = """HloModule doubled

ENTRY %main (x: f32[2,3]) -> f32[2,3] {
  %x = f32[2,3] parameter(0)
  ROOT %y = f32[2,3] add(%x, %x)
}
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_text_goes_through() -> None:
    module = tw.Module.from_text(TEXT)
    assert str(module) == TEXT == module.to_text()
    assert repr(module) == "<Module doubled: 2 instructions>"
    assert (module.name, module.instruction_count) == ("doubled", 2)
    assert module.entry.name == "main"
    assert [computation.name for computation in module.computations] == ["main"]
    assert module.root.name == "y"
    assert module.verify() is None


def test_forms_of_text() -> None:
    module = tw.Module.from_text(TEXT)
    assert "%" not in module.to_text("short")
    assert "add" in module.to_text(form="canonical")
    with pytest.raises(tw.UsageError, match="default, short, canonical"):
        module.to_text("long")
    b = tw.Builder()
    constants = b.finish(b.constant(np.arange(100, dtype=np.int32)))
    assert "..." in constants.to_text(elide=True)
    assert "99" in constants.to_text()


def test_proto_goes_through() -> None:
    module = tw.Module.from_text(TEXT)
    proto = module.to_proto()
    assert isinstance(proto, bytes)
    decoded = tw.Module.from_proto(proto)
    assert decoded == tw.Module.load(proto)
    # Protos say every layout.
    assert str(decoded.root.shape) == "f32[2,3]{1,0}"
    assert tw.Module.from_proto(decoded.to_proto()) == decoded
    assert tw.Module.load(bytearray(proto)) == decoded
    np.testing.assert_array_equal(decoded(X), X + X)


def test_files_go_through(tmp_path: Path) -> None:
    module = tw.Module.from_text(TEXT)
    for name in ("m.hlo", "m.pb", "m.mlir", "m.mlirbc"):
        path = tmp_path / name
        module.save(path)
        loaded = tw.Module.from_file(path)
        assert loaded == tw.Module.load(path) == tw.Module.load(str(path))
        np.testing.assert_array_equal(loaded(X), X + X)
    assert (tmp_path / "m.hlo").read_text() == TEXT
    with pytest.raises(tw.UsageError, match="text proto"):
        module.save(tmp_path / "m.pbtxt")
    with pytest.raises(tw.FileError) as caught:
        module.save(tmp_path / "no" / "m.hlo")
    assert caught.value.errno == 2


def test_lowered_programs_are_loaded() -> None:
    lowered = jax.jit(lambda x: jnp.tanh(x).sum(axis=1)).lower(X)
    module = tw.Module.load(lowered)
    np.testing.assert_allclose(module(X), np.tanh(X).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(tw.run(lowered, X).output, np.tanh(X).sum(axis=1), rtol=1e-6)


def test_other_sources_are_refused() -> None:
    for source, kind in ((3, "int"), ([72, 108], "list")):
        with pytest.raises(tw.UsageError, match=f"not from {kind}"):
            tw.Module.load(source)
    with pytest.raises(tw.FileError):
        tw.Module.load("no_such_file.hlo")


def test_modules_are_equal_if_their_texts_are() -> None:
    module = tw.Module.from_text(TEXT)
    assert module == tw.Module.load(TEXT)
    assert module != tw.Module.load(TEXT.replace("%y", "%z"))
    assert module != TEXT
    with pytest.raises(TypeError):
        hash(module)


def test_notebooks_show_escaped_text() -> None:
    shown = tw.Module.from_text(TEXT)._repr_html_()
    assert shown.startswith("<pre>") and shown.endswith("</pre>")
    assert "-&gt; f32[2,3]" in shown
    b = tw.Builder()
    x = b.parameter("x", "f32[]")
    for _ in range(300):
        x = b.unary("negate", x)
    shown = b.finish(x)._repr_html_()
    assert shown.count("\n") < 210 and "more lines" in shown


def test_arrays_of_jax_go_in() -> None:
    array = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    np.testing.assert_array_equal(tw.Module.load(TEXT)(array), 2 * np.asarray(array))
