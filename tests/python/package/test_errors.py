"""Exceptions: their classes, places and messages."""

from __future__ import annotations

import pickle

import pytest
import tilewright as tw


def test_errors_of_text_have_a_place() -> None:
    text = "HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negat(x)\n}\n"
    with pytest.raises(tw.ParseError) as caught:
        tw.Module.from_text(text)
    error = caught.value
    assert (error.code, error.line, error.column) == ("input", 5, 19)
    assert error.diagnostics == (tw.Diagnostic(None, "unknown opcode `negat`", 5, 19),)
    assert "did you mean `negate`?" in str(error)
    assert "ROOT y = f32[2] negat(x)\n" in str(error) and "^^^^^" in str(error)


def test_all_errors_of_a_module_are_listed() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[3] negate(x)
  ROOT z = f32[4] negate(x)
}
"""
    with pytest.raises(tw.VerifyError) as caught:
        tw.Module.from_text(text)
    error = caught.value
    assert (error.code, error.line) == ("V014", 4)
    assert [(each.code, each.line) for each in error.diagnostics] == [("V014", 4), ("V014", 5)]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is tw.VerifyError and str(again) == str(error)
    assert again.diagnostics == error.diagnostics


def test_bytes_that_are_no_module() -> None:
    for damaged in (b"\x80\x81\x82", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"):
        with pytest.raises(tw.ParseError):
            tw.Module.load(damaged)
    with pytest.raises(tw.ParseError):
        tw.Module.from_proto(b"HloModule m")


def test_files_that_are_not_there() -> None:
    with pytest.raises(OSError, match="there is no such file") as caught:
        tw.Module.from_file("no.hlo")
    assert isinstance(caught.value, tw.FileError) and caught.value.errno == 2


def test_usage_errors_are_value_errors() -> None:
    with pytest.raises(ValueError, match="no pass `none`") as caught:
        tw.optimize("HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}", passes=["none"])
    assert isinstance(caught.value, tw.UsageError) and caught.value.code == "usage"
    assert (caught.value.line, caught.value.column, caught.value.diagnostics) == (None, None, ())


def test_modules_that_cannot_be_evaluated() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[] parameter(0)
      ROOT y = f32[] custom-call(x), custom_call_target="nobody_knows"
    }"""
    with pytest.raises(tw.EvaluationError, match="nobody_knows") as caught:
        tw.run(text, 1.0)
    assert caught.value.code == "evaluation"
    first = tw.run(text, 1.0, opaque_calls=True).output
    assert first == tw.run(text, 1.0, opaque_calls=True).output


def test_all_are_tilewright_errors() -> None:
    for kind in (
        tw.ParseError,
        tw.VerifyError,
        tw.EvaluationError,
        tw.UsageError,
        tw.FileError,
        tw.RemovedError,
        tw.DoesNotApply,
    ):
        assert issubclass(kind, tw.TilewrightError)
        assert kind().code is None and kind("text").diagnostics == ()


def test_names_are_complete() -> None:
    for name in tw.__all__:
        assert hasattr(tw, name)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tw.no_such_name
