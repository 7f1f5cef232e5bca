"""Recovery tables hold, to XLA, the same modules before and after."""

from __future__ import annotations

import tilewright as tw

import xla

MODULE = r"""HloModule m, num_partitions=2, origin_recovery_table={
  {"reshape"} : {"negate" {1,0}},
  "
    HloModule q, frontend_attributes={foo=\"bar\", json=\"\\\"\\\\\"}

    FileNames
    1 \"a.py\"

    FunctionNames
    1 \"f\"

    FileLocations
    1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=5 end_column=6}

    StackFrames
    1 {file_location_id=1 parent_frame_id=1}

    ENTRY r {
      p = f32[4] parameter(0), metadata={op_name=\"a\\n\\\"b\\303\\251\" stack_frame_id=1}
      ROOT q = f32[2,2] reshape(p), backend_config={\"key\":
 [3]}
    }
  "
  {'it\'s'} : {}, 'HloModule single, origin_recovery_table={ {"x"}:{"y"} {"x"}:{"z"} }
    f { ROOT y = f32[11] constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) }
    ENTRY r { ROOT c = f32[11] call(), to_apply=f }'
  {"alone"} : {"p"}, "f32[2] negate(f32[2] x)"
}

ENTRY e {
  ROOT x = f32[2] parameter(0)
}
"""


def same(actual: xla.HloModule, expected: xla.HloModule) -> None:
    assert xla.print_full(actual) == xla.print_full(expected)
    assert xla.proto_without_id(actual) == xla.proto_without_id(expected)


def test_text_to_text_and_proto_are_xlas() -> None:
    """Escapes, tables in tables, constants, stack frames: what XLA makes of them."""
    expected, module = xla.parse(MODULE), tw.Module.from_text(MODULE)
    assert len(xla.proto_without_id(expected)) > 900
    same(xla.parse(module.to_text()), expected)
    # Proto has no partitions, and XLA numbers a text's modules when it reads it.
    proto = expected.as_serialized_hlo_module_proto()
    same(xla.from_proto(module.to_proto()), xla.from_proto(proto))


def test_proto_to_text_and_proto_are_xlas() -> None:
    """The same, from XLA's proto."""
    source = xla.parse(MODULE).as_serialized_hlo_module_proto()
    module = tw.Module.from_proto(source)
    same(xla.from_proto(module.to_proto()), xla.from_proto(source))
    same(xla.parse(module.to_text()), xla.parse(MODULE.replace(", num_partitions=2", "")))
