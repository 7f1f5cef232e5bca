//! One module per rule, made by edits.

use tilewright_ir::ops::control::CallAttrs;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::types::layout::RareLayout;
use tilewright_ir::types::shape::UNBOUNDED;
use tilewright_ir::verify::{self, check};
use tilewright_ir::{
    ArrayShape, Code, ElementType, Layout, Module, Op, Opcode, Padding, PaddingValue, Position,
    ProgramShape, Shape, Tile, verify as verified,
};

use super::place;
use crate::common::{
    Small, add, broadcast, callee, constant_f32, dims, parameter, plain, reshape, shape, small,
};

/// A module that breaks one rule once.
pub(crate) struct Case {
    code: Code,
    place: &'static str,
    message: &'static str,
    module: Module,
}

pub(crate) fn broken(
    code: Code,
    place: &'static str,
    message: &'static str,
    breaks: impl FnOnce(&mut Small),
) -> Case {
    let mut small = small();
    breaks(&mut small);
    Case { code, place, message, module: small.module }
}

fn call(to_apply: tilewright_ir::CompId) -> Op {
    Op::Call(Box::new(CallAttrs { to_apply, is_composite: false }))
}

/// Gives a shape, layout and all, to an instruction of its own.
fn shaped(s: &mut Small, shape: impl Into<Shape>) {
    let at = Position::Before(s.sum);
    s.module.insert(at, crate::common::custom_call(), shape.into(), &[], "shaped").unwrap();
}

fn laid_out(change: impl FnOnce(&mut Layout)) -> ArrayShape {
    let mut layout = Layout::descending(2);
    change(&mut layout);
    ArrayShape::new(ElementType::F32, [2, 3]).with_layout(Some(layout))
}

fn structure() -> Vec<Case> {
    vec![
        broken(verify::NO_ENTRY, "module", "no computation is the entry; mark one `ENTRY`", |s| {
            let mut module = Module::new("m");
            let c = module.add_computation("c");
            add(&mut module, c, parameter(0), "f32[]", &[], "p");
            s.module = module;
        }),
        broken(verify::NO_ENTRY, "module", "no computation is the entry; mark one `ENTRY`", |s| {
            let main = s.main;
            callee(&mut s.module, "left", &["f32[]"], "f32[]");
            s.module.retain_computations(|c| c != main);
        }),
        broken(
            verify::EMPTY_COMPUTATION,
            "empty",
            "it has no instructions; it needs at least its root",
            |s| {
                s.module.add_computation("empty");
            },
        ),
        broken(
            verify::DUPLICATE_INSTRUCTION,
            "x",
            "another instruction of the computation has this name too",
            |s| s.module.set_name(s.y, "x"),
        ),
        broken(
            verify::DUPLICATE_COMPUTATION,
            "main",
            "another computation is named `main` too",
            |s| {
                callee(&mut s.module, "main", &["f32[]"], "f32[]");
            },
        ),
        broken(
            verify::OPERAND_ORDER,
            "sum",
            "operand `twice` does not stand before it in this computation",
            |s| s.module.set_operand(s.sum, 1, s.twice).unwrap(),
        ),
        broken(
            verify::OPERAND_ORDER,
            "sum",
            "operand `sum` does not stand before it in this computation",
            |s| s.module.set_operand(s.sum, 0, s.sum).unwrap(),
        ),
        broken(
            verify::CALL_ORDER,
            "call",
            "computation `late` must stand before this call of it",
            |s| {
                let late = callee(&mut s.module, "late", &["f32[4]"], "f32[4]");
                add(&mut s.module, s.main, call(late), "f32[4]", &[s.x], "call");
            },
        ),
        broken(
            verify::CALL_ORDER,
            "call",
            "computation `main` must stand before this call of it",
            |s| {
                add(&mut s.module, s.main, call(s.main), "f32[4]", &[s.x, s.y], "call");
            },
        ),
        broken(
            verify::PARAMETERS,
            "gap",
            "parameter number 3 is repeated or leaves a gap; 2 was expected",
            |s| {
                add(&mut s.module, s.main, parameter(3), "f32[]", &[], "gap");
            },
        ),
        broken(
            verify::PARAMETERS,
            "y",
            "parameter number 0 is repeated or leaves a gap; 1 was expected",
            |s| s.module.set_attributes(s.y, parameter(0)).unwrap(),
        ),
        broken(
            verify::CONTROL_ORDER,
            "sum",
            "control predecessor `twice` does not stand before it in this computation",
            |s| s.module.set_control_predecessors(s.sum, vec![s.x, s.twice]),
        ),
        broken(
            verify::CONTROL_ORDER,
            "sum",
            "control predecessor `p0` does not stand before it in this computation",
            |s| {
                let other = callee(&mut s.module, "other", &["f32[]"], "f32[]");
                let p = s.module.computation(other).parameters()[0];
                s.module.set_control_predecessors(s.sum, vec![p]);
            },
        ),
    ]
}

fn shapes() -> Vec<Case> {
    vec![
        broken(verify::OPERAND_COUNT, "one", "`add` takes 2 operands, not 1", |s| {
            add(&mut s.module, s.main, Op::Add, "f32[4]", &[s.x], "one");
        }),
        broken(
            verify::OPERAND,
            "mixed",
            "the operands of `add` differ in type: f32 and s32; convert one of them",
            |s| {
                let c = Op::Convert;
                let s32 = add(&mut s.module, s.main, c, "s32[4]", &[s.x], "s32");
                add(&mut s.module, s.main, Op::Add, "f32[4]", &[s.x, s32], "mixed");
            },
        ),
        broken(verify::OPERAND, "not", "`not` takes pred or integer arrays, not f32[4]", |s| {
            add(&mut s.module, s.main, plain(Opcode::Not), "f32[4]", &[s.x], "not");
        }),
        broken(
            verify::ATTRIBUTE,
            "wide",
            "`broadcast` dimensions names dim 2, but the array has rank 2",
            |s| {
                add(&mut s.module, s.main, broadcast(&[2]), "f32[2,4]", &[s.x], "wide");
            },
        ),
        broken(
            verify::RESULT,
            "reshape",
            "`reshape` keeps the number of elements: f32[4] has 4, f32[5] has 5",
            |s| {
                add(&mut s.module, s.main, reshape(), "f32[5]", &[s.x], "reshape");
            },
        ),
        broken(verify::RESULT, "exp", "`sinh` of these operands yields f32[4], not s32[4]", |s| {
            add(&mut s.module, s.main, Op::Sinh, "s32[4]", &[s.x], "exp");
        }),
        broken(
            verify::CALLEE,
            "reduce",
            "parameter 0 of `wrong` is s32[], but `reduce` gives it f32[]",
            |s| {
                let mut module = Module::new("m");
                let wrong = callee(&mut module, "wrong", &["s32[]", "f32[]"], "f32[]");
                let main = module.add_computation("main");
                module.set_entry(main);
                let x = add(&mut module, main, parameter(0), "f32[4]", &[], "x");
                let zero = add(&mut module, main, constant_f32(0.0), "f32[]", &[], "zero");
                let attrs = ReduceAttrs { dimensions: dims(&[0]), to_apply: wrong };
                let op = Op::Reduce(Box::new(attrs));
                add(&mut module, main, op, "f32[]", &[x, zero], "reduce");
                s.module = module;
            },
        ),
        broken(verify::SHAPE, "shaped", "dim size -1 is negative", |s| {
            shaped(s, shape("f32[2,-1]"));
        }),
        broken(
            verify::SHAPE,
            "shaped",
            "f32[4611686018427387904] has more bytes than 64 bits can count",
            |s| shaped(s, shape("(token[], (f32[4611686018427387904]))")),
        ),
        broken(verify::SHAPE, "shaped", "dim size -7 is negative", |s| {
            shaped(s, Shape::Buffer(Box::new(shape("f32[-7]"))));
        }),
    ]
}

fn layouts() -> Vec<Case> {
    let padded = |sizes: &'static [i64]| {
        move |l: &mut Layout| {
            l.padding = Some(Box::new(Padding { dims: dims(sizes), value: PaddingValue::Zero }));
        }
    };
    let tiled =
        |sizes: &'static [i64]| move |l: &mut Layout| l.tiles.push(Tile { dims: sizes.into() });
    let case = |message, array: ArrayShape| {
        broken(verify::LAYOUT, "shaped", message, |s| shaped(s, array))
    };
    vec![
        case(
            "the layout orders 1 dims, but the array has 2",
            laid_out(|l| *l = Layout::descending(1)),
        ),
        case("the layout names dim 0 twice", laid_out(|l| *l = Layout::new([0, 0]))),
        case(
            "the layout names dim 2, but the array has rank 2",
            laid_out(|l| *l = Layout::new([2, 0])),
        ),
        case("tile sizes must be 1 or more", laid_out(tiled(&[8, 0]))),
        case(
            "the minor dim of a tile has no other to be merged with by `*`",
            laid_out(tiled(&[Tile::COMBINE])),
        ),
        case(
            "the minor dim of a tile has no other to be merged with by `*`",
            laid_out(tiled(&[8, Tile::COMBINE])),
        ),
        case(
            "the tail padding alignment must be 1 or more, not 0: `L(0)`",
            laid_out(|l| l.tail_padding_alignment = 0),
        ),
        case(
            "the size of an element in bits must be 1 or more, not -4: `E(-4)`",
            laid_out(|l| l.element_size_in_bits = -4),
        ),
        case(
            "the size of the metadata in bytes must be 1 or more, not -1: `M(-1)`",
            laid_out(|l| {
                let dynamic_shape_metadata_prefix_bytes = -1;
                l.rare = Some(Box::new(RareLayout {
                    dynamic_shape_metadata_prefix_bytes,
                    ..Default::default()
                }));
            }),
        ),
        case("padding names 1 dims, but the array has 2", laid_out(padded(&[4]))),
        case("dim 1 of size 3 cannot be padded to 2", laid_out(padded(&[2, 2]))),
        broken(
            verify::LAYOUT,
            "module",
            "entry_computation_layout: the layout names dim 1, but the array has rank 1",
            |s| {
                let wrong = ArrayShape::new(ElementType::F32, [4]);
                let mut entry = entry_layout(&["f32[4]", "f32[4]"], "f32[4]");
                entry.result = wrong.with_layout(Some(Layout::new([1]))).into();
                s.module.header.entry_layout = Some(entry);
            },
        ),
    ]
}

fn entry_layout(parameters: &[&str], result: &str) -> ProgramShape {
    ProgramShape {
        parameters: parameters.iter().map(|text| shape(text)).collect(),
        result: shape(result),
    }
}

fn entry() -> Vec<Case> {
    let case = |place, message, parameters: &'static [&str], result: &'static str| {
        broken(verify::ENTRY_LAYOUT, place, message, |s| {
            s.module.header.entry_layout = Some(entry_layout(parameters, result));
        })
    };
    vec![
        case(
            "module",
            "entry_computation_layout has 1 parameters, but the entry `main` has 2",
            &["f32[4]"],
            "f32[4]",
        ),
        case(
            "y",
            "entry_computation_layout says s32[4] for parameter 1, which is f32[4]",
            &["f32[4]", "s32[4]"],
            "f32[4]",
        ),
        case(
            "root",
            "entry_computation_layout says f32[5] for the result, which is f32[4]",
            &["f32[4]", "f32[4]"],
            "f32[5]",
        ),
    ]
}

fn cases() -> Vec<Case> {
    let annotations = super::annotations::cases();
    [structure(), shapes(), layouts(), entry(), annotations].into_iter().flatten().collect()
}

/// Returns the codes that some case breaks.
pub(crate) fn codes() -> Vec<Code> {
    cases().iter().map(|case| case.code).collect()
}

#[test]
fn each_module_breaks_one_rule() {
    for case in cases() {
        let found: Vec<(Code, String, String)> = check(&case.module)
            .into_iter()
            .map(|d| (d.code, place(&case.module, &d), d.message))
            .collect();
        let expected = (case.code, case.place.to_owned(), case.message.to_owned());
        assert_eq!(found, [expected]);
        assert!(verified(case.module).is_err());
    }
}

#[test]
fn a_sound_module_is_verified() {
    let mut s = small();
    s.module.header.entry_layout = Some(entry_layout(&["f32[4]", "f32[4]"], "f32[4]"));
    s.module.set_control_predecessors(s.root, vec![s.x, s.sum]);
    shaped(&mut s, laid_out(|l| l.tiles.push(Tile { dims: [Tile::COMBINE, 8].into() })));
    s.module.set_name(s.x, "a name of one's own");
    shaped(&mut s, ArrayShape::new(ElementType::F32, [UNBOUNDED, 4]).with_dynamic(&[true, false]));
    let ids: Vec<_> = s.module.instructions(s.main).collect();
    s.module.set_name(ids[2], "other");
    let module = verified(s.module).unwrap();
    assert_eq!(module.instruction_count(), 7);
    assert_eq!(module.clone().into_inner().name, "small");
}

#[test]
fn everything_is_reported_in_one_run() {
    let mut s = small();
    s.module.set_name(s.y, "x");
    s.module.set_operand(s.sum, 1, s.twice).unwrap();
    shaped(&mut s, shape("f32[-1]"));
    s.module.add_computation("empty");
    let rejected = verified(s.module).unwrap_err();
    let codes: Vec<String> = rejected.diagnostics.iter().map(|d| d.code.to_string()).collect();
    assert_eq!(codes, ["V003", "V005", "V002", "V017"]);
    let expected = "V003: instruction `x`: another instruction of the computation has this name too\n\
         V005: instruction `sum`: operand `twice` does not stand before it in this computation\n\
         V002: computation `empty`: it has no instructions; it needs at least its root\n\
         V017: instruction `shaped`: dim size -1 is negative";
    assert_eq!(rejected.to_string(), expected);
    assert_eq!(rejected.module.name, "small", "given back");
}

/// Shape rules follow operands, so they wait until these are sound.
#[test]
fn shapes_are_judged_in_sound_modules_only() {
    let mut s = small();
    let wrong = add(&mut s.module, s.main, Op::Sinh, "s32[9]", &[s.x], "wrong");
    s.module.set_name(s.y, "x");
    let codes = |m: &Module| check(m).iter().map(|d| d.code).collect::<Vec<_>>();
    assert_eq!(codes(&s.module), [verify::DUPLICATE_INSTRUCTION]);
    s.module.set_name(s.y, "y");
    assert_eq!(codes(&s.module), [verify::RESULT]);
    s.module.remove(wrong).unwrap_err();
    s.module.set_root(s.root).unwrap();
    s.module.remove(wrong).unwrap();
    assert_eq!(codes(&s.module), []);
}
