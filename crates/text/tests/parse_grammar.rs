//! Tests that our parser accepts what XLA's parser accepts: one line or form after the other.
use tilewright_ir::Dims;
use tilewright_ir::metadata::{Origin, OriginTree, OriginalArray};
use tilewright_ir::ops::attr::Real64;
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::{Extras, InstId, Literal, Module, Op, Opcode, Shape};
use tilewright_text::{PrintOptions, parse, parse_bytes, print};

fn module(text: &str) -> Module {
    match parse(text) {
        Ok(parsed) => parsed.module,
        Err(errors) => panic!("{errors}\nin\n{text}"),
    }
}

/// Returns a module with an entry of these lines, after some parameters and two computations to
/// call.
fn with_lines(lines: &str) -> Module {
    module(&format!(
        "HloModule m\n\n\
         %add_f (a: f32[], b: f32[]) -> f32[] {{\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}}\n\n\
         ge {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=GE\n}}\n\n\
         ENTRY %main {{\n  x = f32[4,6] parameter(0)\n  z = f32[] parameter(1)\n  i = s32[] parameter(2)\n  tok = token[] parameter(3)\n{lines}\n}}\n"
    ))
}

fn root(module: &Module) -> InstId {
    module.computation(module.entry().unwrap()).root().unwrap()
}

fn named(module: &Module, name: &str) -> InstId {
    let entry = module.entry().unwrap();
    module.instructions(entry).find(|&id| module.name_of(id) == name).unwrap()
}

fn extras(line: &str) -> Extras {
    let module = with_lines(line);
    module.extras(root(&module)).unwrap().clone()
}

/// Returns the root's shape, as our own `Display` writes it.
fn shape_of(text: &str) -> String {
    let module = with_lines(&format!("ROOT r = {text} custom-call(), custom_call_target=\"t\""));
    module.shape(root(&module)).to_string()
}

#[test]
fn shapes_and_layouts() {
    let unchanged = [
        "f32[]",
        "f32[2,3]",
        "pred[0]",
        "f32[2,3]{0,1}",
        "bf16[16,256]{1,0:T(8,128)(2,1)S(1)}",
        "s4[16,256]{1,0:T(8,128)E(4)S(1)}",
        "f32[16,256]{1,0:T(8,128)L(1024)}",
        "f32[16,256]{1,0:T(*,128)}",
        "f32[16,256]{1,0:S(5)SC(1:64,128)}",
        "f32[<=16,256]{1,0:T(8,128)M(16)}",
        "f32[16,256]{1,0:#(u32)*(u64)}",
        "f32[]{:T(128)}",
        "f32[?,<=8,3]",
        "f32[2,3]{0,1:P(3,5)}",
        "f32[2,3]{0,1:P(3,5)V(-inf)}",
        "f32[2,3]{0,1:T(2,2)P(3,5)V(lowest)}",
        "f32[2]{0:P(f32[3]{0})}",
        "()",
        "(f32[2], (s32[], token[]), opaque[])",
        "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])",
        "b(f32[8])",
        "c128[1]",
        "f8e4m3b11fnuz[3]",
        "f4e2m1fn[2]",
        "s1[8]",
        "u2[8]",
    ];
    for text in unchanged {
        assert_eq!(shape_of(text), text);
    }
    let spelt_otherwise = [
        ("f32 [ 2 , 3 ] { 0 , 1 }", "f32[2,3]{0,1}"),
        ("f32[2,3]{1,0:D(D,C+)T(8,128)}", "f32[2,3]{1,0:T(8,128)}"),
        ("f32[/*rows*/2,3]", "f32[2,3]"),
        ("( f32[2] , s32[] )", "(f32[2], s32[])"),
        ("f32[]{}", "f32[]"),
        ("f32[2,3]{1,0:P(3,5)V(0)}", "f32[2,3]{1,0:P(3,5)}"),
    ];
    for (text, expected) in spelt_otherwise {
        assert_eq!(shape_of(text), expected);
    }
}

#[test]
fn shapes_met_before_are_the_same_shape() {
    let module = with_lines("a = f32[4,6] negate(x)\nROOT b = f32[4,6] negate(a)");
    let id = |name| module.instruction(named(&module, name)).shape_id();
    assert_eq!(id("a"), id("b"));
    assert_eq!(id("a"), id("x"));
}

fn constant(text: &str) -> Literal {
    let module = with_lines(&format!("ROOT c = {text}"));
    module.constant(root(&module)).unwrap().clone()
}

fn floats(text: &str) -> Vec<u32> {
    let literal = constant(text);
    let values = literal.as_array().unwrap().as_slice::<f32>().unwrap();
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn float_constants() {
    assert_eq!(floats("f32[] constant(300)"), [300f32.to_bits()]);
    assert_eq!(floats("f32[] constant(-0)"), [0x8000_0000]);
    assert_eq!(floats("f32[] constant(-0.0)"), [0x8000_0000]);
    assert_eq!(floats("f32[] constant(1e-05)"), [1e-5f32.to_bits()]);
    assert_eq!(
        floats("f32[4] constant({inf, -inf, nan, -nan})"),
        [0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffc0_0000]
    );
    assert_eq!(floats("f32[2] constant({nan(0x1), -nan(0x400001)})"), [0x7f80_0001, 0xffc0_0001]);
    assert_eq!(
        floats("f32[2,2] constant({ { 1, 2.5 }, { .5, 3. } })"),
        [1f32.to_bits(), 2.5f32.to_bits(), 0.5f32.to_bits(), 3f32.to_bits()]
    );
    assert_eq!(floats("f32[3] constant({1 2 /*no comma*/ 3})").len(), 3);
    assert_eq!(floats("f32[0] constant({})").len(), 0);
    assert_eq!(floats("f32[2,0] constant({})").len(), 0);
    assert_eq!(floats("f32[2,0] constant({ { }, { } })").len(), 0);
    assert_eq!(floats("f32[0,1000000000000] constant({  })").len(), 0);
}

/// XLA sets the first element and leaves the others zero: the expected values are what it prints.
#[test]
fn arrays_without_braces() {
    for (text, full) in [
        ("f32[2,2] constant(0)", "f32[2,2] constant({{0, 0}, {0, 0}})"),
        ("f32[2,2] constant(nan)", "f32[2,2] constant({{nan, 0}, {0, 0}})"),
        ("s32[3] constant(-7)", "s32[3] constant({-7, 0, 0})"),
        ("pred[2] constant(true)", "pred[2] constant({true, false})"),
        ("s8[3] constant(0)", "s8[3] constant({0, 0, 0})"),
        ("pred[2] constant(false)", "pred[2] constant({false, false})"),
    ] {
        assert_eq!(constant(text), constant(full), "{text}");
    }
    for text in ["f32[0] constant(1)", "f32[2] constant(x)", "f32[1000000000] constant(0)"] {
        let text = format!("HloModule m\n\nENTRY e {{\n  ROOT c = {text}\n}}\n");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains("expected `{` and the elements"), "{error}");
    }
}

#[test]
fn other_constants() {
    let whole = constant("s64[2] constant({-9223372036854775808, 9223372036854775807})");
    assert_eq!(whole.as_array().unwrap().as_slice::<i64>().unwrap(), [i64::MIN, i64::MAX]);
    let whole = constant("u64[1] constant({18446744073709551615})");
    assert_eq!(whole.as_array().unwrap().as_slice::<u64>().unwrap(), [u64::MAX]);
    let small = constant("s4[2] constant({-8, 7})");
    assert_eq!(small.as_array().unwrap().as_slice::<i8>().unwrap(), [-8, 7]);
    let truth = constant("pred[4] constant({true, false, 2, 0})");
    let expected = [true, false, true, false];
    assert_eq!(truth.as_array().unwrap().as_slice::<bool>().unwrap(), expected);
    let complex = constant("c64[1] constant({(nan, -1)})");
    let value = complex.as_array().unwrap().as_slice::<num_complex::Complex<f32>>().unwrap()[0];
    assert!(value.re.is_nan());
    assert_eq!(value.im, -1.0);
    let tuple = constant("(f32[], (s32[2], pred[])) constant((1, ({1, 2}, true)))");
    assert_eq!(tuple.leaves().len(), 3);
    let elided = constant("f32[1,16]{1,0} constant({...})");
    assert!(matches!(elided, Literal::Elided(shape) if shape.to_string() == "f32[1,16]"));
    let half = constant("f16[1] constant({1.00048828125})");
    let bits = half.as_array().unwrap().as_slice::<half::f16>().unwrap()[0].to_bits();
    assert_eq!(bits, 0x3c00, "a tie goes to even");
    let half = constant("f16[1] constant({1.000488281250000000000000000000000000001})");
    let bits = half.as_array().unwrap().as_slice::<half::f16>().unwrap()[0].to_bits();
    assert_eq!(bits, 0x3c01, "more than a tie, though not in f64");
}

/// The lines of XLA's grammar that its parser was seen to accept.
#[test]
fn attributes_of_every_op() {
    let lines = include_str!("grammar/lines.txt");
    let mut count = 0;
    for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let module = with_lines(&format!("ROOT r = {line}"));
        assert_eq!(module.name_of(root(&module)), "r");
        count += 1;
    }
    assert!(count > 80, "only {count} lines");
}

#[test]
fn values_of_attributes() {
    let module = with_lines(
        "ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=%add_f, metadata={op_type=\"t\" op_name=\"a\\\"b\" source_file=\"f.py\" source_line=7 source_end_line=8 profile_type={1} stack_frame_id=3}",
    );
    let id = root(&module);
    let Op::Reduce(attrs) = module.op(id) else { panic!("not a reduce") };
    let ReduceAttrs { dimensions, to_apply } = &**attrs;
    assert_eq!(dimensions.as_slice(), [1]);
    assert_eq!(module.computation(*to_apply).name(), "add_f");
    let metadata = module.metadata(id).unwrap();
    assert_eq!((metadata.op_type.as_str(), metadata.op_name.as_str()), ("t", "a\"b"));
    assert_eq!((metadata.source_file.as_str(), metadata.source_line), ("f.py", 7));
    assert_eq!(metadata.stack_frame_id, 3);
    let rare = metadata.rare.as_ref().unwrap();
    assert_eq!((rare.source_end_line, rare.profile_type.as_slice()), (8, &[1][..]));
}

#[test]
fn the_same_metadata_again_and_metadata_that_begins_like_it() {
    let module = with_lines(
        "a = f32[4,6] negate(x), metadata={op_name=\"n\"}\n\
         b = f32[4,6] negate(x), metadata={op_name=\"n\"}, sharding={replicated}\n\
         ROOT c = f32[4,6] negate(x), metadata={op_name=\"n\" source_line=2}",
    );
    let metadata = |name| module.metadata(named(&module, name)).unwrap().clone();
    assert_eq!(metadata("a"), metadata("b"));
    assert_eq!(metadata("c").source_line, 2);
    assert!(module.extras(named(&module, "b")).unwrap().sharding.is_some());
}

#[test]
fn common_attributes_are_carried() {
    let found = extras(
        "ROOT r = f32[4,6] negate(x), sharding={devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}, \
         frontend_attributes={k=\"v}\",k2={\"j\":[1,{}]}}, backend_config={\"a\":\"it's }\"}, \
         control-predecessors={%z, i}, statistics={visualizing_index=0,stat-1=33}, \
         origin={{\"x\"}}, brand_new=b01f_01io->b01f",
    );
    let frontend = found.frontend_attributes.iter().map(|(n, v)| (n.as_str(), &**v));
    assert!(frontend.eq([("k", "v}"), ("k2", "{\"j\":[1,{}]}")]));
    assert_eq!(&*found.backend_config.unwrap().0, "{\"a\":\"it's }\"}");
    assert_eq!(found.control_predecessors.len(), 2);
    let other: Vec<_> = found.other.iter().map(|(n, v)| (n.as_str(), &*v.0)).collect();
    assert_eq!(other, [("brand_new", "b01f_01io->b01f")]);
    let statistics = found.statistics.unwrap();
    assert_eq!(statistics.values, [("stat-1".into(), Real64(33.0))]);
    let x = OriginalArray { instruction: "x".into(), part: Dims::new() };
    assert_eq!(*found.origin.unwrap(), Origin::Value(OriginTree::Array(Some(x))));
}

#[test]
fn strings_of_either_quote_may_be_configurations() {
    for config in [r#""it's { \" ""#, r#"'it\'s { " }'"#, "''", r#"{"a":"'"}"#] {
        let found = extras(&format!("ROOT r = f32[4,6] negate(x), backend_config={config}"));
        assert_eq!(&*found.backend_config.expect("a configuration").0, config);
    }
}

#[test]
fn shardings_of_every_generation_stay_as_they_are() {
    let shardings = [
        "{replicated}",
        "{maximal device=3}",
        "{devices=[2,2]<=[2,2]T(1,0)}",
        "{devices=[2,1,2]<=[4] last_tile_dims={manual}}",
        "{replicated metadata={op_name=\"x\"}}",
        "{{replicated}, {devices=[2]0,1}}",
        "{}",
        "{mesh['x'=2,'y'=4], [{'x'}, {'y', ?}], replicated={'y'}}",
        "{mesh['x'=8], device_ids=([2,4]T(1,0)), [{'x':(1)2}]}",
    ];
    for sharding in shardings {
        let module = with_lines(&format!("ROOT r = f32[4,6] negate(x), sharding={sharding}"));
        let text = print(&module, &PrintOptions::new()).unwrap();
        assert!(text.contains(&format!(", sharding={sharding}\n")), "{sharding} became {text}");
    }
}

#[test]
fn header_attributes_and_tables() {
    let text = "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}) }, \
        buffer_donor={ (0, {}), (1, {0}) }, entry_computation_layout={(f32[2]{0}, /*index=1*/(s32[], token[]))->f32[2]{0}}, \
        replica_count=2, frontend_attributes={k=\"v\"}\n\n\
        FileNames\n1 \"a b.py\"\n2 \"c.py\"\n\nFunctionNames\n1 \"f.<locals>.g\"\n\nFileLocations\n\
        1 {file_name_id=2 function_name_id=1 line=3 end_line=4 column=5 end_column=6}\n\nStackFrames\n\
        1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=1 parent_frame_id=2}\n\n\
        ENTRY e {\n  p = f32[2]{0} parameter(0)\n  q = (s32[], token[]) parameter(1)\n  ROOT r = f32[2]{0} negate(p)\n}";
    let module = module(text);
    let header = &module.header;
    assert!(header.is_scheduled);
    let layout = header.entry_layout.as_ref().unwrap();
    assert_eq!(layout.parameters[1].to_string(), "(s32[], token[])");
    let aliased = header.input_output_alias.iter().map(|alias| (alias.output[0], alias.parameter));
    assert!(aliased.eq([(0, 0), (1, 1)]));
    assert_eq!(header.buffer_donors, [(0, Dims::new()), (1, Dims::from_slice(&[0]))]);
    assert_eq!(header.replica_count, Some(2));
    assert_eq!(header.frontend_attributes, [("k".into(), "v".into())]);
    let tables = header.stack_tables.as_ref().unwrap();
    assert_eq!(tables.source_of(2), Some(("c.py", 3)));
    assert_eq!((tables.file_names.len(), tables.stack_frames.len()), (2, 2));
}

#[test]
fn operands_nested_and_with_shapes() {
    let module = with_lines(
        "y = f32[4,6] negate(x)\n\
         ROOT r = f32[4,6]{1,0} add(multiply(x, y), f32[4,6] negate(multiply(f32[4,6]{0,1} %x, y)))",
    );
    let id = root(&module);
    let names: Vec<_> = module.operands(id).iter().map(|&o| module.name_of(o)).collect();
    assert_eq!(names, ["multiply.anon", "negate.anon"]);
    let inner = module.operands(module.operands(id)[1])[0];
    assert_eq!(module.name_of(inner), "multiply.anon.1");
    assert_eq!(module.shape(inner).to_string(), "f32[4,6]");
    let module = with_lines("ROOT r = f32[] add(z, f32[] constant(1))");
    assert_eq!(module.instruction_count(), 3 + 3 + 4 + 2);
}

#[test]
fn shapes_are_inferred_where_they_are_left_out() {
    let module = with_lines(
        "y = add(x, x)\nt = tuple(y, z)\ng = get-tuple-element(t), index=0\nROOT r = transpose(g), dimensions={1,0}",
    );
    assert_eq!(
        module.shape(root(&module)).to_string(),
        "f32[6,4]{0,1}",
        "in which it moves nothing"
    );
}

#[test]
fn computations_written_inline() {
    let module = with_lines(
        "r = f32[4] reduce(x, z), dimensions={1}, to_apply=\n  {\n    a = f32[] parameter(0)\n    b = f32[] parameter(1)\n    ROOT c = f32[] add(a, b)\n  }, metadata={op_name=\"after\"}\n\
         p = pred[] parameter(4)\n\
         ROOT q = f32[] conditional(p, z, z), branch_computations={{ a = f32[] parameter(0) }, { ROOT a = f32[] parameter(0) b = f32[] negate(a) }}",
    );
    let names: Vec<_> =
        module.computations().iter().map(|&c| module.computation(c).name()).collect();
    assert_eq!(names, ["add_f", "ge", "_", "_.1", "_.2", "main"]);
    assert_eq!(module.metadata(named(&module, "r")).unwrap().op_name, "after");
    let called = module.called(root(&module));
    assert_eq!(called.len(), 2);
    let first = module.computation(called[0]).root().unwrap();
    assert_eq!(module.opcode(first), Opcode::Parameter, "the last instruction is the root");
}

#[test]
fn inline_computations_leave_names_to_others() {
    let text = "HloModule m\n\n\
        a { x = f32[] parameter(0) ROOT y = f32[] call(x), to_apply={ z = f32[] parameter(0) } }\n\n\
        _ { ROOT x = f32[] parameter(0) }\n\nENTRY e { ROOT x = f32[] parameter(0) }";
    let module = module(text);
    let names: Vec<_> =
        module.computations().iter().map(|&c| module.computation(c).name()).collect();
    assert_eq!(names, ["_.1", "a", "_", "e"]);
}

#[test]
fn entries_roots_and_threads() {
    let text = "HloModule m\n\nf { p = f32[] parameter(0) }, execution_thread=\"host\"\n\ng { q = f32[] parameter(1) r = f32[] parameter(0) }";
    let module = module(text);
    let [f, g] = module.computations() else { panic!("not two computations") };
    assert_eq!(module.computation(*f).execution_thread(), Some("host"));
    assert_eq!(module.entry(), Some(*g), "the last is the entry");
    let parameters = module.computation(*g).parameters();
    assert_eq!(module.name_of(parameters[0]), "r", "parameters are in the order of their numbers");
}

#[test]
fn words_of_the_grammar_as_names() {
    let module = with_lines(
        "%ROOT = f32[4,6] negate(x)\n%inf = f32[4,6] negate(%ROOT)\n%replicated = f32[4,6] negate(%inf)\n%p.1-2_3=f32[4,6] negate(%replicated)\nROOT nan = f32[4,6] negate(%p.1-2_3)",
    );
    assert_eq!(module.name_of(root(&module)), "nan");
}

#[test]
fn comments_and_whitespace_anywhere() {
    let text = "// first\r\n/* a \" comment */HloModule/**/m // name\n, replica_count=/* two */2\n\n\
        ENTRY//x\n e\t{ ROOT/**/p/**/=/**/f32[]/**/parameter(/*0*/ 0 )/*,*/, metadata={ /* none */ } } // end";
    let module = module(text);
    assert_eq!(module.instruction_count(), 1);
    assert_eq!(module.header.replica_count, Some(2));
}

#[test]
fn text_without_a_header() {
    let text = module("%e (p: f32[2]) -> f32[2] {\n  ROOT %p = f32[2] parameter(0)\n}\n");
    assert_eq!(text.name, "module_e");
    let text = module("ENTRY f {\n  ROOT p = f32[2] parameter(0)\n}\n");
    assert_eq!(text.name, "module_f");
}

#[test]
fn a_single_instruction() {
    for (text, names) in [
        ("ROOT r = f32[4] add(f32[4] a, f32[4] b)", ["a", "b", "r"]),
        ("f32[4]{0} add(f32[4]{0}, f32[4]{0})", ["_0", "_1", "_"]),
        ("%r = add(f32[4] %a, f32[4] %b)", ["a", "b", "r"]),
    ] {
        let module = module(text);
        assert_eq!(module.name, "_");
        let entry = module.entry().unwrap();
        let found: Vec<_> = module.instructions(entry).map(|id| module.name_of(id)).collect();
        assert_eq!(found, names);
        assert_eq!(module.computation(entry).parameters().len(), 2);
    }
    let twice = module("multiply(f32[4] a, f32[4] a)");
    assert_eq!(twice.instruction_count(), 2);
    let called = module(
        "f32[] reduce(f32[4] a, f32[] z), dimensions={0}, to_apply={ x = f32[] parameter(0) y = f32[] parameter(1) ROOT s = f32[] add(x, y) }",
    );
    assert_eq!(called.computations().len(), 2);
}

#[test]
fn a_byte_order_mark_is_no_error_and_other_bytes_are() {
    let text = "HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }";
    assert!(parse(&format!("\u{feff}{text}")).is_ok());
    let nul = format!("{text}\n\0");
    assert_eq!(parse(&nul).unwrap_err().errors()[0].at.to_string(), "3:1");
    let mut bytes = text.as_bytes().to_vec();
    bytes.extend([b'\n', b'/', b'/', b' ', 0xff]);
    let errors = parse_bytes(&bytes).unwrap_err();
    assert_eq!(errors.errors()[0].at.to_string(), "3:4");
    assert!(errors.to_string().contains("UTF-8"), "{errors}");
    assert!(parse_bytes(text.as_bytes()).is_ok());
}

#[test]
fn shapes_of_operands_need_only_be_compatible() {
    let module = with_lines("ROOT r = f32[4,6] negate(f32[4,6]{0,1} x)");
    assert!(
        matches!(module.shape(module.operands(root(&module))[0]), Shape::Array(a) if a.layout.is_none())
    );
}

/// XLA reads integers of 64 bits whether they are written signed or not.
#[test]
fn integers_of_64_bits_in_either_form() {
    let read = |text: &str| constant(text);
    assert_eq!(read("u64[] constant(-1)"), read("u64[] constant(18446744073709551615)"));
    assert_eq!(read("s64[] constant(18446744073709551615)"), read("s64[] constant(-1)"));
    let least = read("s64[] constant(-9223372036854775808)");
    assert_eq!(read("s64[] constant(9223372036854775808)"), least);
    for text in [
        "u64[] constant(-9223372036854775809)",
        "u32[] constant(-1)",
        "s64[] constant(18446744073709551616)",
    ] {
        let text = format!("HloModule m\n\nENTRY e {{\n  ROOT r = {text}\n}}\n");
        assert!(parse(&text).unwrap_err().to_string().contains("out of the range"), "{text}");
    }
}

/// XLA writes the only NaN of these types as `-nan`.
#[test]
fn the_one_nan_of_a_type_has_any_sign() {
    for ty in ["f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3b11fnuz", "f8e8m0fnu"] {
        let read = |value: &str| constant(&format!("{ty}[] constant({value})"));
        assert_eq!(read("-nan"), read("nan"), "{ty}");
    }
    assert_ne!(constant("f8e5m2[] constant(-nan)"), constant("f8e5m2[] constant(nan)"));
}

#[test]
fn an_array_of_one_element_needs_no_braces() {
    assert_eq!(constant("f32[1] constant(7)"), constant("f32[1] constant({7})"));
    assert_eq!(constant("s32[1,1] constant(7)"), constant("s32[1,1] constant({{7}})"));
    let tuple = constant("(s32[], pred[1]) constant((1, true))");
    assert_eq!(tuple, constant("(s32[], pred[1]) constant((1, {true}))"));
}

#[test]
fn words_in_capitals_and_a_colon_after_the_name() {
    let module = module(
        "HloModule m:\n\nENTRY e {\n  a = f32[2,2] parameter(0)\n  b = f32[2,2] dot(a, a), \
         lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={HIGHEST,High}\n  \
         c = f32[2,2] tanh(b), result_accuracy={mode=HIGHEST}\n  \
         ROOT r = f32[2,2] exponential(c), result_accuracy={mode=DEFAULT}\n}\n",
    );
    assert_eq!(module.name, "m");
    let printed = print(&module, &PrintOptions::new()).unwrap();
    assert!(printed.contains("operand_precision={highest,high}"), "{printed}");
    assert!(printed.contains("tanh(%b), result_accuracy={mode=highest}"), "{printed}");
}

#[test]
fn a_mesh_without_a_comma_after_it() {
    let with = |comma: &str| {
        extras(&format!(
            "ROOT r = f32[4,6] negate(x), sharding={{mesh['a'=2,'b'=2]{comma} [{{'a'}}, {{}}], unreduced={{'b'}}}}"
        ))
    };
    assert_eq!(with(""), with(","));
}

/// The texts are those that jaxlib 0.12.0.1 prints.
#[test]
fn parts_of_a_reduction_say_which() {
    let with = |kind: &str| {
        let sharding = format!("{{mesh['a'=2,'b'=2], [{{'a'}}, {{}}], unreduced={kind}{{'b'}}}}");
        let text = format!(
            "HloModule m\n\nENTRY e {{\n  x = f32[4,6] parameter(0)\n  \
             ROOT r = f32[4,6] negate(x), sharding={sharding}\n}}\n"
        );
        (sharding, print(&module(&text), &PrintOptions::new()).unwrap())
    };
    for kind in ["", "max", "min"] {
        let (sharding, printed) = with(kind);
        assert!(printed.contains(&sharding), "{printed}");
    }
    // A sum needs no word.
    assert_eq!(with("sum").1, with("").1);
}

/// XLA reads `<=[2,2]` in replica groups and not in all shardings, and writes
/// `<=[4]`.
#[test]
fn devices_in_order_are_in_one_row() {
    let with = |devices: &str| {
        extras(&format!(
            "ROOT r = f32[4,6] negate(x), sharding={{devices=[2,2,2]{devices} last_tile_dim_replicate}}"
        ))
    };
    assert_eq!(with("<=[2,2,2]T(0,1,2)"), with("<=[8]"));
    assert_eq!(with("<=[2,4]"), with("<=[8]"));
    assert_ne!(with("<=[2,4]T(1,0)"), with("<=[8]"));
}

#[test]
fn operands_may_be_written_more_or_less_dynamic() {
    let module = module(
        "HloModule m\n\nENTRY e {\n  a = f32[<=4] parameter(0)\n  b = f32[4] parameter(1)\n  \
         ROOT r = f32[<=4] add(f32[4] a, f32[<=4] b)\n}\n",
    );
    assert_eq!(module.shape(module.operands(root(&module))[1]).to_string(), "f32[4]");
}

/// With a layout: without it, XLA would take the values for one.
#[test]
fn literals_of_custom_calls() {
    for literal in ["s32[] 4", "s32[2]{0} {1, 2}", "( s32[2]{0} {1, 2}, ( pred[] true ) )", "(  )"]
    {
        let line = format!("custom-call(%x), custom_call_target=\"t\", literal={literal}");
        let module = with_lines(&format!("ROOT r = f32[] {line}"));
        let printed = print(&module, &PrintOptions::new()).unwrap();
        assert!(printed.contains(&line), "{printed}");
    }
}

#[test]
fn sparsity_of_both_operands() {
    let config =
        "{lhs={sparsity=2x4 dimension=1 stride=1} rhs={sparsity=1x4 dimension=0 stride=1}}";
    let module = with_lines(&format!(
        "k = f32[6,8] parameter(4)\nROOT r = f32[4,8] convolution(x, k), dim_labels=bf_io->bf, sparsity_config={config}"
    ));
    let printed = print(&module, &PrintOptions::new()).unwrap();
    assert!(printed.contains(config), "{printed}");
}

/// Custom calls that represent convolutions may have dims without a label.
#[test]
fn dim_labels_without_a_name() {
    for (labels, printed_as) in
        [("?b01f_0?1io->b01?f", "?b01f_0?1io->b01?f"), ("b01f??_01io->bf01", "b01f_01io->bf01")]
    {
        let line = "ROOT r = f32[] custom-call(), window={size=2x2}, dim_labels=";
        let module = with_lines(&format!("{line}{labels}, custom_call_target=\"t\""));
        let printed = print(&module, &PrintOptions::new()).unwrap();
        assert!(printed.contains(&format!("dim_labels={printed_as},")), "{printed}");
    }
}
