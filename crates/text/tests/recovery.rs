//! Recovery tables: whole modules within the header of a module.
use tilewright_ir::metadata::{MAX_RECOVERY_DEPTH, OriginalArray, Recovery};
use tilewright_ir::{Dims, Module, Residue};
use tilewright_text::{Form, PrintError, PrintOptions, parse};

fn module(text: &str) -> Module {
    parse(text).unwrap_or_else(|errors| panic!("{errors}\n{text}")).module
}

fn print(module: &Module) -> Result<String, PrintError> {
    tilewright_text::print(module, &PrintOptions::new())
}

fn array(instruction: &str, part: &[i64]) -> OriginalArray {
    OriginalArray { instruction: instruction.into(), part: Dims::from_slice(part) }
}

const ENTRY: &str = "\n\nENTRY %e (x: f32[2]) -> f32[2] {\n  ROOT %x = f32[2] parameter(0)\n}\n";

/// The spelling of `HloModule::ToString`, except for the newline after the table and those
/// after a module.
#[test]
fn tables_are_spelt_as_by_xla() {
    let text = r#"HloModule m, origin_recovery_table={
  {"Z"} : {""}
  {"a"} : {"b" {1,0}},
  "
    HloModule q, is_scheduled=true, origin_recovery_table={
      {\"i\" {0}} : {\"j\"},
      \"
        HloModule deepest, frontend_attributes={k=\\\"v\\\"}

        ENTRY %r (p: f32[2]) -> f32[2] {
          ROOT %p = f32[2] parameter(0)
        }
      \"
    }

    %f (y: f32[2]) -> f32[2] {
      ROOT %y = f32[2] parameter(0)
    }

    ENTRY %r (p: f32[2]) -> f32[2] {
      %p = f32[2] parameter(0), metadata={op_name=\"a\\n\\\"x\\\\\"}
      ROOT %c = f32[2] call(%p), to_apply=%f, backend_config={"k":
 3}
    }
  "
  {"a" {0}} : {"b"}
}"#
    .replace("{\"k\":", "{\\\"k\\\":");
    let text = format!("{text}{ENTRY}");
    let module = module(&text);
    assert_eq!(print(&module).unwrap(), text);
    let table = &module.header.origin_recovery;
    let lost: Vec<&OriginalArray> = table.keys().collect();
    assert_eq!(lost, [&array("Z", &[]), &array("a", &[]), &array("a", &[0])]);
    let recovery = &table[&array("a", &[])];
    assert_eq!(recovery.replacement, array("b", &[1, 0]));
    let within = recovery.module.as_ref().unwrap();
    let entry = within.entry().unwrap();
    let metadata = within.metadata(within.computation(entry).parameters()[0]).unwrap();
    assert_eq!(metadata.op_name, "a\n\"x\\");
    let root = within.computation(entry).root().unwrap();
    let config = within.extras(root).unwrap().backend_config.as_ref().unwrap();
    assert_eq!(&*config.0, "{\"k\":\n 3}");
    let deepest = within.header.origin_recovery[&array("i", &[0])].module.as_ref().unwrap();
    assert_eq!(deepest.header.frontend_attributes, [("k".into(), "v".into())]);
}

#[test]
fn the_first_way_to_an_array_is_kept() {
    let table =
        "{ {\"a\"}:{\"b\"} {}:{} {\"a\"}:{\"c\"}, 'ENTRY r { ROOT p = f32[2] parameter(0) }' }";
    let header = module(&format!("HloModule m, origin_recovery_table={table}{ENTRY}")).header;
    let found: Vec<_> = header.origin_recovery.iter().map(|(a, b)| (a, &b.replacement)).collect();
    let (none, a) = (array("", &[]), array("a", &[]));
    assert_eq!(found, [(&none, &none), (&a, &array("b", &[]))]);
    assert!(header.origin_recovery[&a].module.is_none());
}

/// Returns a module nested in this many tables.
fn nested(depth: usize) -> Module {
    let mut inner = module(&format!("HloModule m{ENTRY}"));
    for _ in 0..depth {
        let mut outer = module(&format!("HloModule m{ENTRY}"));
        let recovery = Recovery {
            replacement: array("b", &[]),
            module: Some(Box::new(inner)),
            residue: Residue::default(),
        };
        outer.header.origin_recovery.insert(array("a", &[]), recovery);
        inner = outer;
    }
    inner
}

#[test]
fn no_deeper_than_is_read_back() {
    let text = print(&nested(MAX_RECOVERY_DEPTH)).unwrap();
    assert_eq!(print(&module(&text)).unwrap(), text);
    assert_eq!(print(&nested(MAX_RECOVERY_DEPTH + 1)), Err(PrintError::RecoveryDepth));
}

#[test]
fn short_and_canonical_forms_are_those_of_every_module() {
    let text = "HloModule m, origin_recovery_table={ {\"a\"}:{\"b\"}, \
                'ENTRY r { p = f32[2] parameter(0) ROOT %q = f32[2] negate(p), metadata={op_name=\"f\"} }' }";
    let module = module(&format!("{text}{ENTRY}"));
    for (form, line) in [
        (Form::Default, "      ROOT %q = f32[2] negate(%p), metadata={op_name=\\\"f\\\"}\n"),
        (Form::Short, "      ROOT q = f32[2] negate(p)\n"),
        (Form::Canonical, "      ROOT negate.0 = f32[2] negate(parameter.0)\n"),
    ] {
        let options = PrintOptions::new().with_form(form);
        let printed = tilewright_text::print(&module, &options).unwrap();
        assert!(printed.contains(line), "{printed}");
    }
}

/// Tuples of tuples, whose shapes text leaves out: 2^14 arrays.
#[test]
fn modules_together_infer_no_more_than_one() {
    let mut lines = "  t0 = (f32[], f32[]) parameter(0)\n".to_owned();
    for i in 1..14 {
        let last = i - 1;
        lines.push_str(&format!("  t{i} = tuple(t{last}, t{last})\n"));
    }
    let text = |count: usize| {
        let entry = |i: usize| format!("{{\"a\" {{{i}}}}} : {{\"b\"}}, 'ENTRY r {{\n{lines}}}'\n");
        let table: String = (0..count).map(entry).collect();
        format!("HloModule m, origin_recovery_table={{\n{table}}}{ENTRY}")
    };
    assert!(parse(&text(1)).is_ok());
    let errors = parse(&text(64)).unwrap_err().to_string();
    assert!(errors.contains("too many and too large tuple shapes to infer"), "{errors}");
}
