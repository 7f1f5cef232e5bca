//! A rule from outside the library: defined, added to the default pipeline, tried on a module.
//!
//! ```text
//! cargo run --example custom_rule -p tilewright
//! ```

use std::io::Write as _;

use tilewright::Class;
use tilewright::ir::reducer::Monoid;
use tilewright::pattern::{Match, Rule, any, constant, exp, reduce};
use tilewright::prelude::*;

/// The largest of many exponentials.
const PROGRAM: &str = "
HloModule peaks

larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

ENTRY main {
  x = f32[64,128,256] parameter(0)
  e = f32[64,128,256] exponential(x)
  least = f32[] constant(-inf)
  ROOT peak = f32[64,256] reduce(e, least), dimensions={1}, to_apply=larger
}
";

/// The exponential grows with its argument, so the largest exponential is that of the largest
/// argument, of which there is one for each result.
fn max_of_exp() -> Rule {
    let pattern = reduce(exp(any("x").row_major()).used_once(), constant("init")).named("reduce");
    Rule::new("max-of-exp", pattern)
        .with_law("max exp(x) = exp(max x)")
        .with_class(Class::Bounded)
        .when("be a maximum that begins with -infinity", is_maximum)
        .when("reduce at least one element for each result", |found| {
            found.array("x").and_then(ArrayShape::num_elements) > Some(0)
        })
        .replace(|found, new| {
            let Op::Reduce(attrs) = found.op("reduce")? else { return None };
            let (x, init) = (found.get("x")?, found.get("init")?);
            let largest = new.reduce(x, init, &attrs.dimensions, attrs.to_apply)?;
            new.plain(Opcode::Exp, [largest])
        })
        .say(|found| {
            let what = format!("the exponential of {} after its maximum", found.shape("x")?);
            Some([format!("computed {what}"), format!("computing {what}")])
        })
}

fn is_maximum(found: &Match<'_>) -> bool {
    let (Some(Op::Reduce(attrs)), Some(Op::Constant(init))) =
        (found.op("reduce"), found.op("init"))
    else {
        return false;
    };
    let monoid = Monoid::of(found.module(), attrs.to_apply);
    monoid.is_some_and(|monoid| monoid.opcode == Opcode::Maximum && monoid.is_neutral(init))
}

/// Returns the module before and after, what the report says, and why the rule does not apply
/// again.
pub(crate) fn shown() -> Result<String, Box<dyn std::error::Error>> {
    let before = tilewright::parse(PROGRAM)?;
    let options = Options::new(tilewright::target("tpu-like")?).with_pass(max_of_exp());
    let Optimized { module: after, report, .. } = tilewright::optimize(before.clone(), &options)?;
    assert!(tilewright::check(&before, &after, &CheckOptions::default())?.equal());
    assert!(tilewright::try_rule(&max_of_exp(), 0..20)?.holds());

    let root = after.entry().and_then(|entry| after.computation(entry).root()).ok_or("no root")?;
    let why = max_of_exp().patch_or_why(&after, root, FloatMode::Guarded);
    let why = why.err().ok_or("the rule applies again")?;
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).collect();
    let text = |module| tilewright::print(module, &PrintOptions::default());
    let [before, after] = [text(&before)?, text(&after)?];
    Ok(format!("{before}\n{after}\n{}\n{why}\n", notes.join("\n")))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::io::stdout().write_all(shown()?.as_bytes())?;
    Ok(())
}
