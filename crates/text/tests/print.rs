//! Tests the printer's output against XLA's text for the same modules.
use smallvec::smallvec;
use tilewright_ir::entity::InstId;
use tilewright_ir::layout::Padding;
use tilewright_ir::metadata::{FileLocation, StackFrame};
use tilewright_ir::ops::shaping::ParameterAttrs;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Builder, Data, ElementType, Layout, Literal, Module, Op, OpMetadata,
    Opcode, PaddingValue, Position, ProgramShape, Shape, StackTables,
};
use tilewright_text::{Form, LayoutPadding, PrintError, PrintOptions, print, print_instruction};

const DEFAULT: PrintOptions = PrintOptions::new();
const SHORT: PrintOptions = PrintOptions::new().with_form(Form::Short);

fn f32(dims: &[i64]) -> Shape {
    let layout = Some(Layout::descending(dims.len()));
    Shape::Array(ArrayShape::new(ElementType::F32, dims.iter().copied()).with_layout(layout))
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

fn find(module: &Module, name: &str) -> InstId {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.find(|&id| module.name_of(id) == name).unwrap()
}

fn sum_of_rows() -> Module {
    let mut b = Builder::new("sum");
    let x = b.parameter("x", f32(&[4, 3])).unwrap();
    let zero = b.constant(Literal::scalar(ElementType::F32, 0.0f32).unwrap()).unwrap();
    let add = b.reducer(Opcode::Add, ElementType::F32).unwrap();
    let sum = b.reduce(x, zero, [1], add).unwrap();
    b.finish(sum).unwrap().into_inner()
}

#[test]
fn a_module_in_the_default_form() {
    let mut module = sum_of_rows();
    let sum = find(&module, "reduce");
    module.set_metadata(
        sum,
        OpMetadata { op_name: "jit(f)/sum".into(), stack_frame_id: 1, ..OpMetadata::default() },
    );
    module.header.entry_layout =
        Some(ProgramShape { parameters: vec![f32(&[4, 3])], result: f32(&[4]) });
    module.header.stack_tables = Some(StackTables {
        file_names: vec!["a\"b.py".into()],
        function_names: vec!["f".into()],
        file_locations: vec![FileLocation {
            file_name_id: 1,
            function_name_id: 1,
            line: 3,
            end_line: 4,
            column: 5,
            end_column: 6,
        }],
        stack_frames: vec![StackFrame { file_location_id: 1, parent_frame_id: 1 }],
    });
    let expected = r#"HloModule sum, entry_computation_layout={(f32[4,3]{1,0})->f32[4]{0}}

FileNames
1 "a\"b.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=5 end_column=6}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%add (lhs: f32[], rhs: f32[]) -> f32[] {
  %lhs = f32[] parameter(0)
  %rhs = f32[] parameter(1)
  ROOT %add = f32[] add(%lhs, %rhs)
}

ENTRY %main (x: f32[4,3]) -> f32[4] {
  %x = f32[4,3]{1,0} parameter(0)
  %constant = f32[] constant(0)
  ROOT %reduce = f32[4] reduce(%x, %constant), dimensions={1}, to_apply=%add, metadata={op_name="jit(f)/sum" stack_frame_id=1}
}
"#;
    assert_eq!(print(&module, &DEFAULT).unwrap(), expected);
}

#[test]
fn a_module_in_the_short_form() {
    let mut module = sum_of_rows();
    let sum = find(&module, "reduce");
    let metadata = OpMetadata { op_name: "jit(f)/sum".into(), ..OpMetadata::default() };
    module.set_metadata(sum, metadata);
    module.header.stack_tables = Some(StackTables::default());
    let expected = "HloModule sum

add {
  lhs = f32[] parameter(0)
  rhs = f32[] parameter(1)
  ROOT add = f32[] add(lhs, rhs)
}

ENTRY main {
  x = f32[4,3]{1,0} parameter(0)
  constant = f32[] constant(0)
  ROOT reduce = f32[4] reduce(x, constant), dimensions={1}, to_apply=add
}
";
    assert_eq!(print(&module, &SHORT).unwrap(), expected);
}

/// Words of the grammar keep their `%` where others lose it.
#[test]
fn reserved_names_keep_their_sigil() {
    let mut b = Builder::new("replicated");
    let x = b.parameter("inf", f32(&[2])).unwrap();
    let y = b.unary(Opcode::Negate, x).unwrap();
    let mut module = b.finish(y).unwrap().into_inner();
    module.set_name(y, "ROOT");
    let expected = "HloModule %replicated

ENTRY main {
  %inf = f32[2]{0} parameter(0)
  ROOT %ROOT = f32[2] negate(%inf)
}
";
    assert_eq!(print(&module, &SHORT).unwrap(), expected);
}

#[test]
fn execution_threads() {
    let (mut module, _) = parameter(f32(&[]), "p");
    let entry = module.entry().unwrap();
    module.set_execution_thread(entry, Some("host".into()));
    let text = print(&module, &SHORT).unwrap();
    assert!(text.ends_with("\n}, execution_thread=\"host\"\n"), "{text}");
}

fn padded() -> Shape {
    let mut layout = Layout::new([0, 1]);
    layout.padding =
        Some(Box::new(Padding { dims: smallvec![3, 5], value: PaddingValue::MinusInfinity }));
    Shape::Array(ArrayShape::new(ElementType::F32, [2, 3]).with_layout(Some(layout)))
}

#[test]
fn padding_is_refused_stripped_or_kept() {
    let (module, _) = parameter(Shape::Tuple(vec![f32(&[]), padded()]), "p");
    assert_eq!(print(&module, &DEFAULT), Err(PrintError::Padding("p".into())));
    let strip = print(&module, &DEFAULT.with_padding(LayoutPadding::Strip)).unwrap();
    assert!(strip.contains("%p = (f32[], f32[2,3]{0,1}) parameter(0)"), "{strip}");
    let keep = print(&module, &DEFAULT.with_padding(LayoutPadding::Keep)).unwrap();
    let kept = "%p = (f32[], f32[2,3]{0,1:P(3,5)V(-inf)}) parameter(0)";
    assert!(keep.contains(kept), "{keep}");

    let (mut module, _) = parameter(f32(&[2, 3]), "p");
    module.header.entry_layout =
        Some(ProgramShape { parameters: vec![padded()], result: f32(&[2, 3]) });
    let refused = PrintError::Padding("entry_computation_layout".into());
    assert_eq!(print(&module, &DEFAULT), Err(refused));
}

#[test]
fn what_text_cannot_say_is_an_error() {
    for name in ["", "1a", "a b", "__a", "f32", "token", "\u{e9}"] {
        let (module, _) = parameter(f32(&[]), name);
        assert_eq!(print(&module, &DEFAULT), Err(PrintError::Name(name.into())), "{name}");
    }
    let mut module = Module::new("m");
    module.add_computation("e");
    assert_eq!(print(&module, &DEFAULT), Err(PrintError::EmptyComputation("e".into())));
    let (mut module, _) = parameter(f32(&[]), "p");
    let entry = module.entry().unwrap();
    let op = Op::Constant(Box::new(Literal::Token));
    module.insert(Position::End(entry), op, Shape::Token, &[], "c").unwrap();
    assert_eq!(print(&module, &DEFAULT), Err(PrintError::TokenConstant("c".into())));
}

#[test]
fn large_constants_are_elided_on_request() {
    let mut b = Builder::new("m");
    let array = |len: i32| {
        ArrayLiteral::new(ElementType::S32, [i64::from(len)], Data::S32((0..len).collect()))
    };
    let small = b.constant(array(10).unwrap().into()).unwrap();
    let large = b.constant(array(11).unwrap().into()).unwrap();
    let root = b.op(Op::Tuple, [small, large]).unwrap();
    let module = b.finish(root).unwrap();
    let full = print(&module, &DEFAULT).unwrap();
    assert!(full.contains("constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})"), "{full}");
    let elided = print(&module, &DEFAULT.with_elided_constants(true)).unwrap();
    assert!(elided.contains("constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})"), "{elided}");
    assert!(elided.contains("constant({...})"), "{elided}");
    assert_eq!(print_instruction(&module, large), "%constant.1 = s32[11] constant({...})");
}
