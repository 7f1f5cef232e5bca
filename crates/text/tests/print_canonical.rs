//! Tests the canonical form: it is the same for modules that compute the same.
use tilewright_text::{Form, PrintOptions, parse_and_verify, print};

fn canonical(text: &str) -> String {
    let module = parse_and_verify(text).unwrap();
    print(&module, &PrintOptions::new().with_form(Form::Canonical)).unwrap()
}

const PLAIN: &str = "HloModule m

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %main (x: f32[2,3], y: f32[2]) -> f32[2] {
  %x = f32[2,3]{1,0} parameter(0)
  %y = f32[2]{0} parameter(1)
  %zero = f32[] constant(0)
  %sum = f32[2]{0} reduce(%x, %zero), dimensions={1}, to_apply=%add
  %twice = f32[2]{0} add(%sum, %sum)
  ROOT %r = f32[2]{0} subtract(%twice, %y)
}
";

#[test]
fn names_are_opcodes_with_numbers() {
    let expected = "HloModule m

computation.0 {
  parameter.0 = f32[] parameter(0)
  parameter.1 = f32[] parameter(1)
  ROOT add.0 = f32[] add(parameter.0, parameter.1)
}

ENTRY entry {
  parameter.0 = f32[2,3]{1,0} parameter(0)
  parameter.1 = f32[2]{0} parameter(1)
  constant.0 = f32[] constant(0)
  reduce.0 = f32[2]{0} reduce(parameter.0, constant.0), dimensions={1}, to_apply=computation.0
  add.0 = f32[2]{0} add(reduce.0, reduce.0)
  ROOT subtract.0 = f32[2]{0} subtract(add.0, parameter.1)
}
";
    assert_eq!(canonical(PLAIN), expected);
    assert_eq!(canonical(expected), expected);
}

#[test]
fn names_metadata_and_order_do_not_matter() {
    let other = "HloModule m

%unused (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0)
}

%plus (l: f32[], r: f32[]) -> f32[] {
  %r = f32[] parameter(1)
  %l = f32[] parameter(0)
  ROOT %s = f32[] add(%l, %r), metadata={op_name=\"sum\"}
}

ENTRY %other (second: f32[2], first: f32[2,3]) -> f32[2] {
  %nought = f32[] constant(0)
  %second = f32[2]{0} parameter(1)
  %first = f32[2,3]{1,0} parameter(0), metadata={op_name=\"image\" source_line=3}
  %total = f32[2]{0} reduce(%first, %nought), dimensions={1}, to_apply=%plus
  %double = f32[2]{0} add(%total, %total)
  ROOT %difference = f32[2]{0} subtract(%double, %second)
}
";
    let (plain, other) = (canonical(PLAIN), canonical(other));
    let unused = "\ncomputation.2 {\n  ROOT parameter.0 = f32[] parameter(0)\n}\n";
    assert_eq!(other, plain + unused, "what nothing needs comes last");
}

#[test]
fn what_is_computed_matters() {
    let plain = canonical(PLAIN);
    for (from, to) in [("constant(0)", "constant(1)"), ("subtract(", "multiply("), ("%y)", "%sum)")]
    {
        assert_ne!(canonical(&PLAIN.replace(from, to)), plain, "{to}");
    }
}

/// If a schedule or control edges fix the order, it is kept.
#[test]
fn a_schedule_stays() {
    let scheduled = PLAIN.replace("HloModule m", "HloModule m, is_scheduled=true");
    let text = canonical(&scheduled.replace(
        "  %x = f32[2,3]{1,0} parameter(0)\n  %y = f32[2]{0} parameter(1)\n",
        "  %y = f32[2]{0} parameter(1)\n  %x = f32[2,3]{1,0} parameter(0)\n",
    ));
    let at = |name: &str| text.rfind(&format!("  {name} = ")).unwrap();
    assert!(at("parameter.1") < at("parameter.0"), "{text}");
}
