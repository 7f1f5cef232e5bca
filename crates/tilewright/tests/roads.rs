//! Every road in and out keeps what a module computes, to the bit: text, proto, StableHLO in its forms, and each
//! cleanup pass alone. Both evaluations are the interpreter's own, so that only the road can make a difference.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tilewright::interp::{
    Devices, Evaluation, InputKind, RandomInputs, Tolerance, compare, takes_parts,
};
use tilewright::ir::{ElementType, Literal, Opcode};
use tilewright::prelude::*;
use tilewright::{Emit, Form, PassSelection, load_bytes, optimize, parse, pipeline, print, write};
use tilewright_testkit::effort::{Turns, each, seeds};
use tilewright_testkit::fixture::fixtures;
use tilewright_testkit::generate::{self, random_module};

const EMITS: [Emit; 5] =
    [Emit::Hlo, Emit::Proto, Emit::Stablehlo, Emit::StablehloGeneric, Emit::StablehloBytecode];

/// The passes of the cleanup, each a road of its own.
fn cleanup() -> Vec<&'static str> {
    let pipeline = pipeline("cleanup").unwrap();
    let mut passes: Vec<&str> = pipeline.first.iter().chain(pipeline.cleanup).copied().collect();
    passes.sort_unstable();
    passes.dedup();
    passes
}

/// How many roads were taken, and which of them changed a value.
#[derive(Default)]
struct Taken {
    count: AtomicUsize,
    failed: Mutex<Vec<String>>,
}

impl Taken {
    fn fail(&self, what: String) {
        self.failed.lock().unwrap().push(what);
    }

    #[track_caller]
    fn none_failed(self) -> usize {
        let failed = self.failed.into_inner().unwrap();
        assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n\n"));
        self.count.into_inner()
    }
}

/// Returns a module after a road; `None` if the road refuses it, with words.
type Road = Box<dyn Fn(&Verified) -> Option<Verified> + Sync>;

fn roads() -> Vec<(String, Road)> {
    let mut roads: Vec<(String, Road)> = Vec::new();
    for emit in EMITS {
        let road = move |module: &Verified| {
            let bytes = write(module, emit, &PrintOptions::default()).ok()?;
            let read = load_bytes("road", bytes);
            Some(read.unwrap_or_else(|error| panic!("{emit:?} is not read back: {error}")).module)
        };
        roads.push((format!("{emit:?}"), Box::new(road)));
    }
    let canonical = |module: &Verified| {
        let text = print(module, &PrintOptions::default().with_form(Form::Canonical)).unwrap();
        Some(parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
    };
    roads.push(("canonical".to_owned(), Box::new(canonical)));
    for pass in cleanup() {
        let road = move |module: &Verified| {
            let options = Options::new(tilewright::target("tpu-like").unwrap())
                .with_float_mode(FloatMode::Exact)
                .with_passes(PassSelection::list([pass]));
            Some(optimize(module.clone(), &options).unwrap().module)
        };
        roads.push((pass.to_owned(), Box::new(road)));
    }
    roads
}

/// What a module yields on each device, or why it yields nothing.
fn results(module: &Verified, inputs: &[Vec<Literal>], devices: Devices) -> Option<Vec<Literal>> {
    let limits = Limits { max_steps: 3_000_000, max_bytes: 1 << 28 };
    let evaluation = Evaluation::new(module).devices(devices).limits(limits);
    // StableHLO has no tuples around arguments and results.
    let parameters = module.computation(module.entry()?).parameters().len();
    let flat: Vec<Vec<Literal>> =
        inputs.iter().map(|of| of.iter().flat_map(leaves).collect()).collect();
    let is_flat = inputs.iter().any(|of| of.len() != parameters);
    let outputs = evaluation.run(if is_flat { &flat } else { inputs }).ok()?;
    Some(outputs.into_iter().map(|outputs| Literal::Tuple(leaves(&outputs.output))).collect())
}

fn leaves(value: &Literal) -> Vec<Literal> {
    value.leaves().into_iter().cloned().collect()
}

/// Functions of CHLO that are expanded by XLA's formulas when they are read, as jaxlib does, and are ops of HLO.
const EXPANDED: [Opcode; 6] =
    [Opcode::Acos, Opcode::Acosh, Opcode::Asinh, Opcode::Atanh, Opcode::Cosh, Opcode::Sinh];

/// Whether a road may change values: draws of random numbers change with the names of instructions, and
/// StableHLO has no copies, so that a reducer with one becomes a sum, which is rounded once.
fn may_change(module: &Module, road: &str) -> bool {
    let is_stablehlo = road.starts_with("Stablehlo");
    module.computations().iter().any(|&of| {
        let may_change = |id| match module.opcode(id) {
            Opcode::Rng => true,
            Opcode::Copy => is_stablehlo && Some(of) != module.entry(),
            opcode => is_stablehlo && EXPANDED.contains(&opcode),
        };
        module.instructions(of).any(may_change)
    })
}

/// The most elements of an array in a module that is evaluated.
const MOST_ELEMENTS: i64 = 30_000;

/// Takes a module along all roads, or those whose turn it is.
fn travel(name: &str, module: &Verified, roads: &[(String, Road)], turns: u64, taken: &Taken) {
    let devices = tilewright::devices_of(module);
    let inputs = RandomInputs::new(7, InputKind::Edges).devices(devices.count().unwrap_or(1));
    let Ok(inputs) = inputs.generate(module) else { return };
    let all = module.computations().iter().flat_map(|&of| module.instructions(of));
    let arrays = all.filter_map(|id| module.array_shape(id)?.num_elements());
    if takes_parts(module) || arrays.max() > Some(MOST_ELEMENTS) {
        return;
    }
    let Some(expected) = results(module, &inputs, devices) else { return };
    let mut turns = Turns::of(turns);
    for (road, take) in roads {
        if !turns.is_next() || may_change(module, road) {
            continue;
        }
        let Some(after) = take(module) else { continue };
        let found = results(&after, &inputs, devices);
        let Some(found) = found else {
            taken.fail(format!("{name}: {road}: it cannot be run any more"));
            continue;
        };
        for (expected, found) in expected.iter().zip(&found) {
            // Portable artifacts have no CHLO: its functions are expanded, as jaxlib does.
            let tolerance = match road.as_str() {
                "StablehloBytecode" => Tolerance::of,
                _ => |_: ElementType| Tolerance::EXACT,
            };
            match compare(expected, found, tolerance) {
                Ok(compared) => {
                    if let Some(worst) = compared.iter().find(|one| !one.equal) {
                        taken.fail(format!("{name}: {road}: {worst:?}\n{}", text(&after)));
                    }
                }
                Err(error) => taken.fail(format!("{name}: {road}: {error}")),
            }
        }
        taken.count.fetch_add(1, Relaxed);
    }
}

fn text(module: &Verified) -> String {
    print(module, &PrintOptions::default()).unwrap()
}

#[test]
fn random_modules_and_fixtures_keep_their_values() {
    let (roads, taken) = (roads(), Taken::default());
    let types = [
        ElementType::F32,
        ElementType::BF16,
        ElementType::F16,
        ElementType::F64,
        ElementType::S32,
        ElementType::U8,
        ElementType::S8,
        ElementType::Pred,
    ];
    each(seeds(24), |seed| {
        let mut options = generate::Options::of_size(20);
        options.element_types = types.to_vec();
        travel(&format!("seed {seed}"), &random_module(seed, &options), &roads, 1, &taken);
    });
    let folders = ["ops", "rewrite", "devices", "foreign", "models", "torch"];
    let files: Vec<_> = folders.iter().flat_map(|folder| fixtures(folder).unwrap()).collect();
    each(0..files.len() as u64, |number| {
        let file = &files[usize::try_from(number).unwrap()];
        if let Ok(module) = tilewright::load(&file.hlo) {
            travel(&file.name, &module, &roads, 20, &taken);
        }
    });
    let taken = taken.none_failed();
    println!("{taken} roads taken");
    assert!(taken > 500, "only {taken} roads taken");
}

/// Numbers that are at or beyond the ends of some type.
const EDGES: &str = "0, 1, -1, 2.5, -2.5, 127, 128, -129, 255, 256, 32768, 65504, 65536, 2147483648, -3e9, \
                     1.8446744e19, -9.3e18, 1e-40, 3e38, 0.1";

/// A constant of every type converts to every type as the interpreter converts it, and not as a fold does on the
/// way. The interpreter's conversions are XLA's (`fixtures/ops`).
#[test]
fn constants_of_every_type_keep_their_conversions() {
    let (roads, taken) = (roads(), Taken::default());
    let real = |ty: &&ElementType| !ty.is_complex() && ty.bits() >= 8 || **ty == ElementType::Pred;
    let types: Vec<ElementType> = ElementType::ALL.iter().filter(real).copied().collect();
    let count = EDGES.split(',').count();
    each(0..(types.len() * types.len()) as u64, |pair| {
        let pair = usize::try_from(pair).unwrap();
        let (from, to) = (types[pair / types.len()], types[pair % types.len()]);
        // What the first type holds of these numbers: by a conversion that no reader folds.
        let wide = format!(
            "HloModule m\nENTRY e {{\n  c = f64[{count}] constant({{{EDGES}}})\n  \
             ROOT r = {}[{count}] convert(c)\n}}\n",
            from.name()
        );
        let Ok(wide) = parse(&wide) else { return };
        let Some(held) =
            results(&wide, &[vec![]], Devices::ONE).and_then(|held| leaves(held.first()?).pop())
        else {
            return;
        };
        let mut module = wide.into_inner();
        let entry = module.entry().unwrap();
        let root = module.computation(entry).root().unwrap();
        let shape = module.shape(root).clone();
        let constant = tilewright::ir::Op::Constant(Box::new(held));
        let position = tilewright::ir::Position::Before(root);
        let constant = module.insert(position, constant, shape, &[], "held").unwrap();
        let converted = tilewright::ir::Shape::array(to, [i64::try_from(count).unwrap()]);
        let convert = tilewright::ir::Op::Convert;
        let end = tilewright::ir::Position::End(entry);
        let converted = module.insert(end, convert, converted, &[constant], "converted").unwrap();
        module.set_root(converted).unwrap();
        let module = tilewright::ir::verify(module).unwrap();
        travel(&format!("{} to {}", from.name(), to.name()), &module, &roads, 1, &taken);
    });
    assert!(taken.none_failed() > types.len() * types.len(), "few roads taken");
}
