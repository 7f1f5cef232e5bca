//! Text of one instruction of a module that exists, and of shapes and attributes alone.

use tilewright_ir::{InstId, Module, verify};
use tilewright_text::{
    PrintOptions, parse, parse_expression, parse_shape, print, print_attribute, print_sharding,
};

const TEXT: &str = "HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %e (x: f32[2,3], z: f32[]) -> f32[2,3] {
  %x = f32[2,3] parameter(0)
  %z = f32[] parameter(1)
  ROOT %y = f32[2,3] negate(%x)
}
";

fn text(module: &Module) -> String {
    print(module, &PrintOptions::default()).unwrap().trim_end().to_owned() + "\n"
}

/// The module, and its entry's parameters.
fn module() -> (Module, Vec<InstId>) {
    let module = parse(TEXT).unwrap().module;
    let parameters = module.computation(module.entry().unwrap()).parameters().to_vec();
    (module, parameters)
}

#[test]
fn an_instruction_calls_computations_of_the_module() {
    let (mut module, parameters) = module();
    let entry = module.entry().unwrap();
    let values = [("x", parameters[0]), ("start", parameters[1])];
    let source = "reduce(x, start), dimensions={1}, to_apply=%sum";
    let id = parse_expression(source, &mut module, entry, &values).unwrap();
    module.set_name(id, "r");
    let line = "  %r = f32[2] reduce(%x, %z), dimensions={1}, to_apply=%sum\n";
    assert_eq!(
        text(&module),
        TEXT.replace(
            "  ROOT %y = f32[2,3] negate(%x)\n",
            &format!("  ROOT %y = f32[2,3] negate(%x)\n{line}"),
        )
    );
    assert!(verify(module).is_ok());
}

#[test]
fn a_wrong_text_changes_nothing() {
    for source in ["negat(x)", "negate(y)", "negate(x) x", "negate(x), dimensions", "", "(x)"] {
        let (mut module, parameters) = module();
        let entry = module.entry().unwrap();
        let errors = parse_expression(source, &mut module, entry, &[("x", parameters[0])]);
        assert!(errors.is_err(), "{source}");
        assert_eq!(text(&module), TEXT, "{source}");
    }
}

#[test]
fn shapes_and_attributes_alone() {
    let shape = parse_shape(" (f32[2,3]{0,1}, s32[]) ").unwrap();
    assert_eq!(shape.to_string(), "(f32[2,3]{0,1}, s32[])");
    assert!(parse_shape("f32[2] f32[2]").is_err());
    assert!(parse_shape("").is_err());

    let source = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0), sharding={devices=[2]0,1}\n  \
                  ROOT s = f32[2] slice(x), slice={[0:4:2]}\n}\n";
    let module = parse(source).unwrap().module;
    let root = module.computation(module.entry().unwrap()).root().unwrap();
    let mut shown = Vec::new();
    module.op(root).for_each_attr(&mut |name, value| {
        shown.push((name, print_attribute(&module, &value)));
    });
    assert_eq!(shown, [("slice", "{[0:4:2]}".to_owned())]);
    let sharding = module.extras(module.operands(root)[0]).and_then(|e| e.sharding.as_deref());
    assert_eq!(print_sharding(sharding.unwrap()), "{devices=[2]0,1}");
}
