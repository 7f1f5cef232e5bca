//! The table of ops: which there are, and what is derived from their rows.
use std::collections::BTreeSet;

use tilewright_ir::devices::ReplicaGroups;
use tilewright_ir::ops::attr::{AttrError, AttrKind, AttrSpec, AttrValue, AttrValues, Real};
use tilewright_ir::ops::contract::{Sparsity, SparsityConfig};
use tilewright_ir::ops::control::{DomainMetadata, OutputAlias};
use tilewright_ir::ops::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use tilewright_ir::ops::elementwise::ResultAccuracy;
use tilewright_ir::sharding::Placement;
use tilewright_ir::{CompId, Dims, Entity, Family, Op, Opcode};
use tilewright_ir::{ElementType, Literal, Shape, Sharding};

/// The names of XLA's `hlo_opcode.h` as of jaxlib 0.12.0.1, written down by hand.
const NAMES: &str = "
    abs acos acosh add add-dependency after-all all-gather all-gather-done all-gather-start
    all-reduce all-reduce-done all-reduce-start all-to-all and asin asinh async-done async-start
    async-update atan2 atanh batch-norm-grad batch-norm-inference batch-norm-training bitcast
    bitcast-convert broadcast call cbrt ceil cholesky clamp count-leading-zeros
    collective-broadcast collective-permute collective-permute-done collective-permute-start
    collective-reduce compare complex concatenate conditional constant convert convolution copy copy-done
    copy-start cosine cosh custom-call divide domain dot dynamic-reshape dynamic-slice
    dynamic-update-slice erf exponential exponential-minus-one fft floor fusion gather
    get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one logistic
    map maximum minimum mulhi multiply negate not opt-barrier or outfeed pad parameter
    partition-id popcnt power ragged-all-to-all ragged-dot real recv recv-done reduce
    reduce-precision reduce-scatter reduce-window remainder replica-id reshape reverse rng
    rng-bit-generator rng-get-and-update-state round-nearest-afz round-nearest-even rsqrt
    scaled-dot scan scatter select select-and-scatter send send-done set-dimension-size
    shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice sort sqrt
    stochastic-convert subtract tan tanh topk transpose triangular-solve tuple while xor
";

#[test]
fn the_ops_are_those_of_xla() {
    let expected: BTreeSet<&str> = NAMES.split_whitespace().collect();
    let names: BTreeSet<&str> = Opcode::ALL.iter().map(|o| o.name()).collect();
    assert_eq!(names, expected);
    assert_eq!(expected.len(), 134);
    assert_eq!(Opcode::ALL.len(), 134, "names are unique");
}

#[test]
fn names_lead_back_to_their_ops() {
    for &opcode in Opcode::ALL {
        assert_eq!(Opcode::from_name(opcode.name()), Some(opcode));
        assert_eq!(opcode.to_string(), opcode.name());
    }
    for unknown in ["", "Add", "add ", "addd", "parameter_number", "kAdd"] {
        assert_eq!(Opcode::from_name(unknown), None, "{unknown}");
    }
}

#[test]
fn attributes_are_unique_within_an_op_and_not_those_of_all_ops() {
    const COMMON: [&str; 8] = [
        "sharding",
        "frontend_attributes",
        "statistics",
        "parameter_replication",
        "control-predecessors",
        "origin",
        "metadata",
        "backend_config",
    ];
    for &opcode in Opcode::ALL {
        let names: BTreeSet<&str> = opcode.attrs().iter().map(|a| a.name).collect();
        assert_eq!(names.len(), opcode.attrs().len(), "{opcode}");
        assert!(COMMON.iter().all(|common| !names.contains(common)), "{opcode}");
    }
}

#[test]
fn families_are_the_files_of_ops() {
    let families: BTreeSet<Family> = Opcode::ALL.iter().map(|o| o.family()).collect();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops");
    for family in &families {
        let file = std::path::Path::new(directory).join(format!("{family}.rs"));
        assert!(file.exists(), "{}", file.display());
    }
    assert_eq!(families.len(), 10);
    assert_eq!(Opcode::DynamicSlice.family().to_string(), "indexing");
}

/// Ops as XLA describes them: these yield their operands, or parts of them.
#[test]
fn what_hands_values_on() {
    let handing: Vec<&str> =
        Opcode::ALL.iter().filter(|o| o.hands_on_its_operands()).map(|o| o.name()).collect();
    assert_eq!(handing, ["add-dependency", "get-tuple-element", "opt-barrier", "tuple"]);
    let whole = |opcode: Opcode| opcode.takes_values_whole();
    assert!(whole(Opcode::While) && whole(Opcode::CustomCall) && whole(Opcode::Tuple));
    assert!(!whole(Opcode::Map) && !whole(Opcode::Copy) && !whole(Opcode::AllReduce));
    let moving = [Opcode::Reshape, Opcode::Call, Opcode::Gather, Opcode::AllToAll];
    assert!(moving.iter().all(|o| o.family().moves_elements_only()));
    let computing = [Opcode::Add, Opcode::Dot, Opcode::Reduce, Opcode::ReduceWindow, Opcode::Fft];
    assert!(computing.iter().all(|o| !o.family().moves_elements_only()));
}

#[test]
fn arity_in_words() {
    let words = |opcode: Opcode| opcode.arity().to_string();
    assert_eq!(words(Opcode::Exp), "1 operand");
    assert_eq!(words(Opcode::Add), "2 operands");
    assert_eq!(words(Opcode::Iota), "0 operands");
    assert_eq!(words(Opcode::Concatenate), "at least 1 operand");
    assert_eq!(words(Opcode::Reduce), "at least 2 operands");
    assert!(Opcode::Tuple.arity().admits(0) && Opcode::Tuple.arity().admits(1000));
    assert!(!Opcode::Select.arity().admits(2) && !Opcode::Select.arity().admits(4));
}

fn comp(index: usize) -> CompId {
    CompId::from_index(index)
}

/// Returns a value of each kind that is no attribute's default.
fn value(kind: AttrKind) -> AttrValue {
    let spatial = || [2, 3].into_iter().collect();
    match kind {
        AttrKind::Int => AttrValue::Int(17),
        AttrKind::Bool => AttrValue::Bool(true),
        AttrKind::Float => AttrValue::Float(Real(0.25)),
        AttrKind::Str => AttrValue::Str("text".into()),
        AttrKind::Words => AttrValue::Words(vec!["high".into(), "default".into()]),
        AttrKind::Word => AttrValue::Word("?".into()),
        AttrKind::Dims => AttrValue::Dims(Dims::from_slice(&[2, 0])),
        AttrKind::Computation => AttrValue::Computation(comp(5)),
        AttrKind::Computations => AttrValue::Computations([comp(5), comp(6)].into_iter().collect()),
        AttrKind::Slices => {
            AttrValue::Slices([SliceDim { start: 1, limit: 9, stride: 2 }].into_iter().collect())
        }
        AttrKind::Padding => {
            AttrValue::Padding([PadDim { low: -1, high: 2, interior: 3 }].into_iter().collect())
        }
        AttrKind::Window => AttrValue::Window([WindowDim::new(3)].into_iter().collect()),
        AttrKind::ConvDims => AttrValue::ConvDims(ConvDims {
            input_batch: 0,
            input_feature: 1,
            input_spatial: spatial(),
            kernel_input_feature: 0,
            kernel_output_feature: 1,
            kernel_spatial: spatial(),
            output_batch: 0,
            output_feature: 1,
            output_spatial: spatial(),
        }),
        AttrKind::DimsLists => AttrValue::DimsLists(vec![Dims::from_slice(&[4, 2])]),
        AttrKind::Pairs => AttrValue::Pairs(vec![(0, 1), (1, 0)]),
        AttrKind::Sparsity => AttrValue::Sparsity(SparsityConfig {
            lhs: Some(Sparsity { non_zero: 2, block_size: 4, dimension: 1, stride: 1 }),
            rhs: None,
        }),
        AttrKind::Accuracy => AttrValue::Accuracy(ResultAccuracy::Highest),
        AttrKind::Shape => AttrValue::Shape(Shape::scalar(ElementType::F32)),
        AttrKind::Shapes => AttrValue::Shapes(vec![Shape::scalar(ElementType::F32)]),
        AttrKind::Literal => {
            AttrValue::Literal(Box::new(Literal::scalar(ElementType::F32, 1f32).unwrap()))
        }
        AttrKind::Aliasing => AttrValue::Aliasing(vec![OutputAlias {
            output: Dims::new(),
            operand: 1,
            operand_part: Dims::from_slice(&[0]),
        }]),
        AttrKind::ReplicaGroups => {
            AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(vec![vec![0, 1]])))
        }
        AttrKind::Domain => AttrValue::Domain(Box::new(DomainMetadata {
            kind: "sharding".into(),
            entry: Sharding::Leaf(Placement::Replicated.into()),
            exit: Sharding::Leaf(Placement::Maximal(1).into()),
        })),
    }
}

/// Returns a word of the closed set of an attribute that is not its default.
fn word(opcode: Opcode, name: &str) -> &'static str {
    match name {
        "direction" => "LE",
        "type" => "TOTALORDER",
        "kind" => "kCustom",
        "fft_type" => "IRFFT",
        "transpose_a" => "ADJOINT",
        "distribution" => "rng_normal",
        "algorithm" if opcode == Opcode::RngBitGenerator => "rng_philox",
        "algorithm" => "dot_f32_f32_f32",
        "convolution_kind" => "dgrad",
        "padding_type" => "PADDING_SAME",
        "schedule" => "SCHEDULE_LATEST",
        "api_version" => "API_VERSION_TYPED_FFI",
        _ => panic!("which words can `{name}` of `{opcode}` be?"),
    }
}

fn attr(opcode: Opcode, spec: AttrSpec) -> AttrValue {
    match (spec.kind, spec.name) {
        (AttrKind::Word, name) => AttrValue::Word(word(opcode, name).into()),
        (AttrKind::Bool, "largest") => AttrValue::Bool(false),
        (AttrKind::Bool, "is_stable") if opcode == Opcode::TopK => AttrValue::Bool(false),
        (kind, _) => value(kind),
    }
}

fn all_attrs(opcode: Opcode) -> Vec<(&'static str, AttrValue)> {
    opcode.attrs().iter().map(|&spec| (spec.name, attr(opcode, spec))).collect()
}

fn values(list: &[(&'static str, AttrValue)]) -> AttrValues {
    let mut values = AttrValues::default();
    for (name, value) in list {
        assert!(values.insert(name, value.clone()));
        assert!(!values.insert(name, value.clone()), "a second `{name}` is refused");
    }
    values
}

fn written(op: &Op) -> Vec<(&'static str, AttrValue)> {
    let mut written = Vec::new();
    op.for_each_attr(&mut |name, value| written.push((name, value)));
    written
}

fn opcodes_with_attrs() -> impl Iterator<Item = Opcode> {
    Opcode::ALL.iter().copied().filter(|o| *o != Opcode::Constant)
}

#[test]
fn what_is_taken_is_given_back() {
    for opcode in opcodes_with_attrs() {
        let list = all_attrs(opcode);
        let op = Op::from_attrs(opcode, &mut values(&list)).unwrap();
        assert_eq!(op.opcode(), opcode);
        assert_eq!(written(&op), list, "{opcode}");
        // The order in which they are read does not matter.
        let reversed: Vec<_> = list.iter().rev().cloned().collect();
        assert_eq!(Op::from_attrs(opcode, &mut values(&reversed)), Ok(op), "{opcode}");
    }
}

#[test]
fn one_attribute_at_a_time_may_be_missing() {
    for opcode in opcodes_with_attrs() {
        let list = all_attrs(opcode);
        for absent in 0..list.len() {
            let mut fewer = list.clone();
            let (name, _) = fewer.remove(absent);
            match Op::from_attrs(opcode, &mut values(&fewer)) {
                // As XLA does, what is empty is written as such.
                Ok(op) if name == "replica_groups" || opcode == Opcode::Broadcast => {
                    assert_eq!(written(&op).len(), list.len(), "{opcode}");
                }
                // A default takes its place, and is not written.
                Ok(op) => assert_eq!(written(&op), fewer, "{opcode} without {name}"),
                Err(error) => assert_eq!(error, AttrError::Missing(name), "{opcode}"),
            }
        }
    }
}

#[test]
fn required_attributes() {
    let required = |opcode: Opcode| -> Vec<&str> {
        let list = all_attrs(opcode);
        let without = |name: &str| {
            let fewer: Vec<_> = list.iter().filter(|(n, _)| *n != name).cloned().collect();
            Op::from_attrs(opcode, &mut values(&fewer)).is_err()
        };
        list.iter().map(|(name, _)| *name).filter(|name| without(name)).collect()
    };
    assert_eq!(required(Opcode::Reduce), ["dimensions", "to_apply"]);
    assert_eq!(required(Opcode::Iota), ["iota_dimension"]);
    assert_eq!(required(Opcode::Reshape), [""; 0]);
    assert_eq!(required(Opcode::Dot), [""; 0]);
    assert_eq!(required(Opcode::Convolution), ["dim_labels"]);
    assert_eq!(required(Opcode::Compare), ["direction"]);
    assert_eq!(required(Opcode::Fusion), ["kind", "calls"]);
    assert_eq!(required(Opcode::While), ["condition", "body"]);
    assert_eq!(required(Opcode::Conditional), [""; 0]);
    assert_eq!(required(Opcode::CustomCall), ["custom_call_target"]);
    assert_eq!(required(Opcode::Sort), ["dimensions", "to_apply"]);
    assert_eq!(required(Opcode::TopK), ["k"]);
    assert_eq!(required(Opcode::BatchNormGrad), ["epsilon", "feature_index"]);
    let gather = [
        "offset_dims",
        "collapsed_slice_dims",
        "start_index_map",
        "index_vector_dim",
        "slice_sizes",
    ];
    assert_eq!(required(Opcode::Gather), gather);
}

#[test]
fn a_value_of_another_kind_is_refused() {
    for opcode in opcodes_with_attrs() {
        for (i, (name, right)) in all_attrs(opcode).into_iter().enumerate() {
            let wrong = match right {
                AttrValue::Int(_) => AttrValue::Bool(true),
                _ => AttrValue::Int(1),
            };
            let mut list = all_attrs(opcode);
            list[i].1 = wrong;
            match Op::from_attrs(opcode, &mut values(&list)) {
                Err(AttrError::Value { name: at, expected }) => {
                    assert_eq!(at, name, "{opcode}");
                    assert!(!expected.is_empty());
                }
                other => panic!("{opcode} takes a wrong `{name}`: {other:?}"),
            }
        }
    }
}

#[test]
fn a_word_outside_of_its_set_is_refused_with_the_set() {
    let list = [("direction", AttrValue::Word("lt".into()))];
    let error = Op::from_attrs(Opcode::Compare, &mut values(&list)).unwrap_err();
    let expected = "attribute `direction` must be one of `EQ` `NE` `GE` `GT` `LE` `LT`";
    assert_eq!(error.to_string(), expected);
    let error = Op::from_attrs(Opcode::Compare, &mut AttrValues::default()).unwrap_err();
    assert_eq!(error.to_string(), "attribute `direction` is missing");
}

#[test]
fn a_constant_is_not_made_of_attributes() {
    let error = Op::from_attrs(Opcode::Constant, &mut AttrValues::default()).unwrap_err();
    assert_eq!(error, AttrError::Missing("value"));
    assert!(Opcode::Constant.attrs().is_empty());
}

#[test]
fn called_computations_are_found_and_replaced() {
    for opcode in opcodes_with_attrs() {
        let mut op = Op::from_attrs(opcode, &mut values(&all_attrs(opcode))).unwrap();
        let called = |op: &Op| {
            let mut called = Vec::new();
            op.for_each_computation(&mut |c| called.push(c));
            called
        };
        let expected: Vec<CompId> = opcode
            .attrs()
            .iter()
            .flat_map(|spec| match spec.kind {
                AttrKind::Computation => vec![comp(5)],
                AttrKind::Computations => vec![comp(5), comp(6)],
                _ => Vec::new(),
            })
            .collect();
        assert_eq!(called(&op), expected, "{opcode}");
        op.map_computations(&mut |c| comp(c.index() + 10));
        let moved: Vec<CompId> = expected.iter().map(|c| comp(c.index() + 10)).collect();
        assert_eq!(called(&op), moved, "{opcode}");
    }
}

#[test]
fn floats_are_told_apart_by_their_bits() {
    assert_ne!(Real(0.0), Real(-0.0));
    assert_eq!(Real(f32::NAN), Real(f32::NAN));
    assert_ne!(Real(f32::from_bits(0x7fc0_0001)), Real(f32::from_bits(0x7fc0_0002)));
}
