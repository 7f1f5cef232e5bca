//! Tests the order and spelling of attributes against XLA's output.
use smallvec::smallvec;
use smol_str::SmolStr;
use tilewright_ir::entity::InstId;
use tilewright_ir::metadata::{
    InputOutputAlias, Origin, OriginTree, OriginalArray, RareMetadata, Statistics,
};
use tilewright_ir::ops::attr::{Real64, Verbatim};
use tilewright_ir::ops::control::{
    ApiVersion, CustomCallAttrs, CustomCallSchedule, FusionAttrs, FusionKind, PaddingType,
};
use tilewright_ir::ops::dims::WindowDim;
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::sharding::Placement;
use tilewright_ir::{
    ArrayShape, Builder, ElementType, Extras, Layout, Module, Op, OpMetadata, Opcode, Position,
    ProgramShape, Shape,
};
use tilewright_ir::{Dims, Sharding};
use tilewright_text::{Form, PrintOptions, print, print_instruction};

const DEFAULT: PrintOptions = PrintOptions::new();
const SHORT: PrintOptions = PrintOptions::new().with_form(Form::Short);

fn f32(dims: &[i64]) -> Shape {
    let layout = Some(Layout::descending(dims.len()));
    Shape::Array(ArrayShape::new(ElementType::F32, dims.iter().copied()).with_layout(layout))
}

fn verbatim(text: &str) -> Verbatim {
    Verbatim(text.into())
}

/// `other` attributes as the parser leaves them.
fn carried(attributes: &[(&str, &str)]) -> Vec<(SmolStr, Verbatim)> {
    attributes.iter().map(|(name, text)| (SmolStr::new(name), verbatim(text))).collect()
}

/// Returns a module with one parameter of this shape and name, which is also its root.
fn parameter(shape: Shape, name: &str) -> (Module, InstId) {
    let mut module = Module::new("m");
    let entry = module.add_computation("e");
    module.set_entry(entry);
    let op = Op::Parameter(Box::new(ParameterAttrs { number: 0 }));
    let id = module.insert(Position::End(entry), op, shape, &[], name).unwrap();
    (module, id)
}

#[test]
fn header_attributes_stand_in_the_order_of_xla() {
    let (mut module, _) = parameter(f32(&[]), "p");
    module.header.is_scheduled = true;
    module.header.entry_layout =
        Some(ProgramShape { parameters: vec![f32(&[])], result: f32(&[]) });
    let header = &mut module.header;
    header.frontend_attributes = vec![("a".into(), "b".into())];
    header.num_partitions = Some(4);
    header.replica_count = Some(2);
    header.allow_sharding_propagation_to_output = vec![true];
    header.allow_sharding_propagation_to_parameters = vec![true];
    header.alias_passthrough_params = true;
    header.buffer_donors = vec![(0, Dims::new())];
    header.input_output_alias = vec![InputOutputAlias {
        output: Dims::new(),
        parameter: 0,
        parameter_part: Dims::new(),
        must: false,
    }];
    header.other = carried(&[("vendor", "{x}")]);
    let text = print(&module, &SHORT).unwrap();
    assert_eq!(
        text.lines().next().unwrap(),
        "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }, \
         buffer_donor={ (0, {}) }, alias_passthrough_params=true, \
         entry_computation_layout={(f32[])->f32[]}, \
         allow_spmd_sharding_propagation_to_parameters={true}, \
         allow_spmd_sharding_propagation_to_output={true}, replica_count=2, num_partitions=4, \
         frontend_attributes={a=\"b\"}, vendor={x}"
    );
}

/// XLA printed the expected line.
#[test]
fn common_attributes_stand_in_the_order_of_xla() {
    let (mut module, p) = parameter(f32(&[8, 8]), "p0");
    let entry = module.entry().unwrap();
    let negate = module.insert(Position::End(entry), Op::Negate, f32(&[8, 8]), &[p], "n").unwrap();
    let mut extras = Extras::default();
    extras.sharding = Some(Box::new(Sharding::Leaf(Placement::Replicated.into())));
    extras.frontend_attributes = vec![("a".into(), "b".into()), ("c".into(), "{x=1}".into())];
    extras.backend_config = Some(verbatim(r#"{"a":{"b":1}}"#));
    extras.control_predecessors = vec![p];
    extras.parameter_replication = vec![true];
    extras.statistics = Some(Box::new(Statistics {
        visualizing_index: 0,
        values: vec![("stat-1".into(), Real64(33.0))],
    }));
    let x = OriginalArray { instruction: "x".into(), part: Dims::new() };
    extras.origin = Some(Box::new(Origin::Value(OriginTree::Array(Some(x)))));
    module.set_extras(negate, extras);
    module.set_metadata(
        negate,
        OpMetadata {
            op_type: "t".into(),
            op_name: "n\"q\\ \n\t\u{e9}'".into(),
            source_file: "f.py".into(),
            source_line: 3,
            stack_frame_id: 7,
            rare: Some(Box::new(RareMetadata {
                source_end_line: 4,
                profile_type: vec![1],
                metadata_payload: "x".into(),
                scheduling_name: "s".into(),
                ..RareMetadata::default()
            })),
        },
    );
    let text = print(&module, &DEFAULT).unwrap();
    let line = text.lines().find(|line| line.contains("negate")).unwrap();
    assert_eq!(
        line,
        r#"  ROOT %n = f32[8,8]{1,0} negate(%p0), parameter_replication={true}, sharding={replicated}, frontend_attributes={a="b",c={x=1}}, control-predecessors={%p0}, statistics={visualizing_index=0,stat-1=33}, origin={{"x"}}, metadata={op_type="t" op_name="n\"q\\ \n\t\303\251\'" source_file="f.py" source_line=3 source_end_line=4 profile_type={1} scheduling_name="s" stack_frame_id=7 metadata_payload="x"}, backend_config={"a":{"b":1}}"#
    );
    let short = print(&module, &SHORT).unwrap();
    assert!(short.contains("control-predecessors={p0}"), "{short}");
    assert!(!short.contains("metadata="), "{short}");
}

#[test]
fn attributes_of_ops() {
    let mut b = Builder::new("m");
    let x = b.parameter("x", f32(&[2])).unwrap();
    let body = b.computation("fused", |b| {
        let p = b.parameter("p", f32(&[2]))?;
        b.unary(Opcode::Negate, p)
    });
    let fused = body.unwrap();
    let fusion = Op::Fusion(Box::new(FusionAttrs {
        kind: FusionKind::Loop,
        calls: fused,
        output_to_operand_aliasing: Vec::new(),
    }));
    let fusion = b.op_with_shape(fusion, f32(&[2]), [x]).unwrap();
    let call = Op::CustomCall(Box::new(CustomCallAttrs {
        window: Some(smallvec![WindowDim::new(3)]),
        dim_labels: None,
        feature_group_count: 2,
        batch_group_count: 1,
        operand_precision: Vec::new(),
        padding_type: PaddingType::Invalid,
        custom_call_target: "a\"b".into(),
        operand_layout_constraints: Some(vec![f32(&[2])]),
        custom_call_has_side_effect: true,
        output_to_operand_aliasing: Vec::new(),
        literal: None,
        schedule: CustomCallSchedule::None,
        api_version: ApiVersion::TypedFfi,
        to_apply: None,
        called_computations: smallvec![fused, fused],
    }));
    let call = b.op_with_shape(call, f32(&[2]), [fusion]).unwrap();
    assert_eq!(
        print_instruction(b.module(), fusion),
        "%fusion = f32[2]{0} fusion(%x), kind=kLoop, calls=%fused"
    );
    assert_eq!(
        print_instruction(b.module(), call),
        "%custom-call = f32[2]{0} custom-call(%fusion), window={size=3}, feature_group_count=2, \
         custom_call_target=\"a\\\"b\", operand_layout_constraints={f32[2]{0}}, \
         custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, \
         called_computations={%fused, %fused}"
    );
}

#[test]
fn long_lists_are_numbered_as_xla_numbers_them() {
    let (mut module, p) = parameter(f32(&[]), "p");
    let entry = module.entry().unwrap();
    let shape = Shape::Tuple(vec![f32(&[]); 6]);
    module.insert(Position::End(entry), Op::Tuple, shape.clone(), &[p; 6], "t").unwrap();
    module.header.entry_layout =
        Some(ProgramShape { parameters: vec![f32(&[]); 6], result: shape });
    let tuple = "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])";
    let text = print(&module, &DEFAULT).unwrap();
    assert!(text.contains(&format!("{tuple} tuple(%p, %p, %p, %p, %p, /*index=5*/%p)")), "{text}");
    assert!(text.contains(&format!("entry_computation_layout={{{tuple}->{tuple}}}")), "{text}");
    let text = print(&module, &SHORT).unwrap();
    assert!(text.contains(&format!("{tuple} tuple(p, p, p, p, p, p)")), "{text}");
}

/// XLA prints and reads them this way: a single value in braces stays unchanged, regardless of
/// its quotes, and other strings are quoted.
#[test]
fn strings_that_begin_with_a_brace() {
    for (given, printed) in [
        (r#""{0}sdy""#, r#""{0}sdy""#),
        (r#""{a""#, r#""{a""#),
        (r#"{"a":"}"}"#, r#"{"a":"}"}"#),
        (r#""{\"a\":1}""#, r#"{"a":1}"#),
        (r#""{}""#, "{}"),
        (r#""}{""#, r#""}{""#),
        (r#""{\"}\"}""#, r#"{"}"}"#),
        ("{a//b}", "{a//b}"),
        ("{a/*}", "{a/*}"),
    ] {
        let text = |value: &str| {
            format!(
                "HloModule m\n\nENTRY e {{\n  ROOT x = f32[] parameter(0), frontend_attributes={{k={value},l=\"1\"}}\n}}\n"
            )
        };
        let module = tilewright_text::parse(&text(given)).unwrap().module;
        let options = tilewright_text::PrintOptions::new().with_form(tilewright_text::Form::Short);
        assert_eq!(tilewright_text::print(&module, &options).unwrap(), text(printed));
    }
}
