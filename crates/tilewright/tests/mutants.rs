//! How much `check` sees: programs with one small mistake, of which the interpreter shows
//! that it changes a result, and programs that are the same in other words.

use tilewright::interp::{InputKind, compare, inputs_for};
use tilewright::ir::ops::shaping::BroadcastAttrs;
use tilewright::ir::{
    ArrayLiteral, Data, ElementType, InstId, Literal, Module, Op, Position, Shape, verify,
};
use tilewright::{CheckOptions, Limits, Options, Verified, check, optimize};
use tilewright_testkit::effort::times;
use tilewright_testkit::fixture::fixtures;

/// A line of a module with one mistake, or the same in other words.
type Change = fn(&str) -> Option<String>;

const MISTAKES: &[(&str, Change)] = &[
    ("another constant", constant),
    ("operands the other way round", swapped),
    ("another op", opcode),
    ("another direction", direction),
    ("a term left out", dropped),
    ("other dims", dims),
    ("another part", part),
];

const HARMLESS: &[(&str, Change)] = &[("a sum the other way round", commuted)];

/// Returns the text between an op's parentheses, and all around it.
fn operands<'a>(line: &'a str, op: &str) -> Option<(&'a str, [&'a str; 2], &'a str)> {
    let at = line.find(&format!(" {op}("))? + op.len() + 2;
    let end = at + line[at..].find(')')?;
    let (first, second) = line[at..end].split_once(", ")?;
    (!second.contains(", ")).then_some((&line[..at], [first, second], &line[end..]))
}

fn constant(line: &str) -> Option<String> {
    let at = line.find(" constant(")? + " constant(".len();
    let end = at + line[at..].find(')')?;
    let text = &line[at..end];
    let changed = match text.parse::<i64>() {
        Ok(number) if !line.contains(" = f") && !line.contains(" = bf") => (number + 1).to_string(),
        _ => {
            let number: f64 = text.parse().ok()?;
            // A constant that is 0, infinite or tiny may be there for its own sake: an init, an
            // epsilon.
            let usual = number.is_finite() && number.abs() > 1e-3;
            usual.then(|| format!("{}", number * 1.25))?
        }
    };
    Some(format!("{}{changed}{}", &line[..at], &line[end..]))
}

fn swapped(line: &str) -> Option<String> {
    let ops = ["subtract", "divide", "power", "remainder"];
    let (before, [a, b], after) = ops.iter().find_map(|op| operands(line, op))?;
    (a != b).then(|| format!("{before}{b}, {a}{after}"))
}

fn commuted(line: &str) -> Option<String> {
    let ops = ["add", "multiply", "maximum", "minimum"];
    let (before, [a, b], after) = ops.iter().find_map(|op| operands(line, op))?;
    (a != b).then(|| format!("{before}{b}, {a}{after}"))
}

fn opcode(line: &str) -> Option<String> {
    let others = [
        ("add", "subtract"),
        ("subtract", "add"),
        ("multiply", "add"),
        ("divide", "multiply"),
        ("maximum", "minimum"),
        ("minimum", "maximum"),
        ("sqrt", "rsqrt"),
        ("rsqrt", "sqrt"),
        ("tanh", "sine"),
        ("negate", "copy"),
        ("and", "or"),
    ];
    let found = |(from, to): (&str, &str)| {
        let from = format!(" {from}(");
        line.contains(&from).then(|| line.replacen(&from, &format!(" {to}("), 1))
    };
    others.into_iter().find_map(found)
}

fn direction(line: &str) -> Option<String> {
    let others =
        [("GT", "LT"), ("LT", "GE"), ("GE", "LT"), ("LE", "GT"), ("EQ", "NE"), ("NE", "EQ")];
    let found = |(from, to): (&str, &str)| {
        let from = format!("direction={from}");
        line.contains(&from).then(|| line.replacen(&from, &format!("direction={to}"), 1))
    };
    others.into_iter().find_map(found)
}

fn dropped(line: &str) -> Option<String> {
    let (before, [a, _], after) = ["add", "subtract"].iter().find_map(|op| operands(line, op))?;
    let at = before.rfind(' ')?;
    Some(format!("{} copy({a}{after}", &before[..at]))
}

fn dims(line: &str) -> Option<String> {
    let at = line.find("dimensions={")? + "dimensions={".len();
    let end = at + line[at..].find('}')?;
    let mut numbers: Vec<&str> = line[at..end].split(',').collect();
    if numbers.len() < 2 || line.contains(" reduce(") {
        return None;
    }
    numbers.swap(0, 1);
    Some(format!("{}{}{}", &line[..at], numbers.join(","), &line[end..]))
}

/// Returns the part of an array one place further on.
fn part(line: &str) -> Option<String> {
    let at = line.find("slice={[")? + "slice={[".len();
    let end = at + line[at..].find(']')?;
    let (from, to) = line[at..end].split_once(':')?;
    let (from, to): (i64, i64) = (from.parse().ok()?, to.parse().ok()?);
    let further = if from > 0 { -1 } else { 1 };
    Some(format!("{}{}:{}{}", &line[..at], from + further, to + further, &line[end..]))
}

/// Returns all modules with one line changed, of those that are still well formed.
fn changed(text: &str, change: Change) -> impl Iterator<Item = (String, Verified)> {
    let lines: Vec<&str> = text.lines().collect();
    let of = move |at: usize| {
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        changed[at] = change(lines[at])?;
        let line = changed[at].trim().to_owned();
        Some((line, tilewright::parse(&changed.join("\n")).ok()?))
    };
    (0..text.lines().count()).filter_map(of)
}

/// By what outputs are multiplied: the tolerance follows them.
const SCALES: [f32; 4] = [1.0, 1e-9, 1e-4, 1e6];

/// Returns a module whose `f32` outputs are multiplied by a factor.
fn scaled(module: &Verified, factor: f32) -> Verified {
    let mut scaled = Module::clone(module);
    let root = scaled.computation(scaled.entry().unwrap()).root().unwrap();
    if matches!(scaled.op(root), Op::Tuple) {
        for (at, part) in scaled.operands(root).to_vec().into_iter().enumerate() {
            let part = multiplied(&mut scaled, part, Position::Before(root), factor);
            scaled.set_operand(root, at, part).unwrap();
        }
    } else {
        let end = Position::End(scaled.entry().unwrap());
        let root = multiplied(&mut scaled, root, end, factor);
        scaled.set_root(root).unwrap();
    }
    verify(scaled).unwrap()
}

fn multiplied(module: &mut Module, value: InstId, at: Position, factor: f32) -> InstId {
    let shape = module.shape(value).clone();
    if shape.as_array().is_none_or(|array| array.element_type != ElementType::F32) {
        return value;
    }
    let factor = ArrayLiteral::new(ElementType::F32, [], Data::F32(vec![factor])).unwrap();
    let op = Op::Constant(Box::new(Literal::Array(factor)));
    let scalar = Shape::scalar(ElementType::F32);
    let mut add = |op, shape, operands: &[InstId]| {
        let name = module.fresh_name("scaled");
        module.insert(at, op, shape, operands, name).unwrap()
    };
    let factor = add(op, scalar, &[]);
    let repeated = Op::Broadcast(Box::new(BroadcastAttrs { dimensions: Default::default() }));
    let factor = add(repeated, shape.clone(), &[factor]);
    add(Op::Multiply, shape, &[value, factor])
}

/// Checks whether results differ so much that nobody would put it down to rounding: by a
/// hundredth of the largest element, where both are finite.
fn noticeable(a: &Literal, b: &Literal) -> bool {
    let exact = |_: ElementType| tilewright::interp::Tolerance::EXACT;
    let found = compare(a, b, exact).unwrap();
    found.iter().any(|found| {
        found.max_abs.is_finite() && found.max_abs > 1e-2 * found.largest && found.max_abs > 1e-2
    })
}

/// Checks whether a change shows on inputs that `check` does not try.
fn changes_results(a: &Verified, b: &Verified) -> bool {
    let kinds = [InputKind::Normal, InputKind::Offset, InputKind::Uniform];
    let result = |module: &Verified, inputs: &[Literal]| {
        tilewright::interp::evaluate(module, inputs, &LIMITS).ok()
    };
    kinds.into_iter().any(|kind| {
        let inputs = inputs_for(a, 1_000, kind).unwrap();
        let both = result(a, &inputs).zip(result(b, &inputs));
        both.is_some_and(|(a, b)| noticeable(&a, &b))
    })
}

fn programs() -> Vec<(String, String, Verified)> {
    let all = fixtures("models").unwrap().into_iter().step_by(2);
    let load = |fixture: tilewright_testkit::fixture::Fixture| {
        let module = tilewright::parse(&fixture.text().unwrap()).ok()?;
        let text = tilewright::print(&module, &tilewright::PrintOptions::default()).ok()?;
        // Those that take long are for the checks by hand.
        let short = text.lines().count() < 400 && elements(&module) < 40_000;
        short.then_some((fixture.name, text, module))
    };
    all.filter_map(load).collect()
}

/// Returns how many elements the entry computes.
fn elements(module: &Verified) -> i64 {
    let instructions = module.instructions(module.entry().unwrap());
    instructions.filter_map(|id| module.array_shape(id)?.num_elements()).sum()
}

/// How many mistakes of a kind are made in a program.
const MOST_OF_A_KIND: usize = 2;

/// A loop whose end was changed may never come to it.
const LIMITS: Limits = Limits { max_steps: 400_000, max_bytes: 1 << 30 };

#[test]
fn mistakes_are_found() {
    let how = CheckOptions::default().with_limits(LIMITS);
    let (mut planted, mut tried) = (0usize, 0);
    let (mut missed, mut failed) = (Vec::new(), Vec::new());
    for (name, text, module) in programs() {
        for (what, change) in MISTAKES {
            let all: Vec<_> = changed(&text, *change).collect();
            // Some changes of each kind are taken from all parts of the program.
            let step = all.len().div_ceil(MOST_OF_A_KIND).max(1);
            for (line, mutant) in all.into_iter().step_by(step) {
                if !changes_results(&module, &mutant) {
                    continue;
                }
                for (scale, at) in SCALES.into_iter().zip(planted..) {
                    // At one scale, unless more effort is asked for.
                    if times() == 1 && !at.is_multiple_of(SCALES.len()) {
                        continue;
                    }
                    tried += 1;
                    let place = format!("{name}, times {scale:e}: {what}: {line}");
                    match check(&scaled(&module, scale), &scaled(&mutant, scale), &how) {
                        Ok(agreement) if agreement.is_within() => missed.push(place),
                        Ok(_) => {}
                        Err(error) => failed.push(format!("{place}: {error}")),
                    }
                }
                planted += 1;
            }
        }
    }
    assert!(planted >= 100, "only {planted}");
    assert!(failed.is_empty(), "{} of {tried}:\n{}", failed.len(), failed.join("\n"));
    assert!(missed.len() * 100 <= tried, "{} of {tried}:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn other_words_are_no_mistakes() {
    let how = CheckOptions::default().with_seeds(1);
    let target = tilewright::target("tpu-like").unwrap();
    let mut tried = 0;
    for (name, text, module) in programs() {
        for (what, change) in HARMLESS {
            for (line, same) in changed(&text, *change).step_by(7).take(3) {
                let scale = SCALES[tried % SCALES.len()];
                tried += 1;
                let agreement =
                    check(&scaled(&module, scale), &scaled(&same, scale), &how).unwrap();
                assert!(agreement.equal(), "{name}: {what}: {line}: {:?}", agreement.outputs);
            }
        }
        let renamed = text.replace("add.", "sum_of_");
        let renamed = tilewright::parse(&renamed).unwrap();
        assert!(check(&module, &renamed, &how).unwrap().equal(), "{name}");
        // The module as our own passes rewrite it.
        let rewritten = optimize(module.clone(), &Options::new(target.clone())).unwrap().module;
        let agreement = check(&module, &rewritten, &how).unwrap();
        assert!(agreement.equal(), "{name}: {:?}", agreement.outputs);
    }
    assert!(tried > 20, "{tried}");
}
