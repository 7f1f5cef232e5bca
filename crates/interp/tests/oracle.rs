//! `docs/oracle.md` says which ops are evaluated on which types, and who says
//! that the results are right: what the fixtures say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tilewright_ir::element::NumberClass;
use tilewright_ir::{ElementType, InstId, Module, Opcode, Shape};
use tilewright_testkit::fixture::{Fixture, fixtures};

/// The coverage of an op by fixtures.
#[derive(Default)]
struct Coverage {
    /// The types of operands and results.
    types: BTreeSet<ElementType>,
    /// The types of the operand that says in what an elementwise op computes.
    computed: BTreeSet<ElementType>,
    /// Where the expected results come from.
    sources: BTreeSet<&'static str>,
}

fn coverage() -> BTreeMap<Opcode, Coverage> {
    let mut all: BTreeMap<Opcode, Coverage> = BTreeMap::new();
    for folder in ["ops", "devices"] {
        for fixture in fixtures(folder).unwrap() {
            let text = fixture.text().unwrap();
            let module = tilewright_text::parse(&text).unwrap().module;
            let source = source(&fixture, &text);
            for &computation in module.computations() {
                for id in module.instructions(computation) {
                    note(all.entry(module.opcode(id)).or_default(), &module, id, source);
                }
            }
        }
    }
    all
}

fn note(of: &mut Coverage, module: &Module, id: InstId, source: &'static str) {
    let types = |id: InstId| {
        let leaves = module.shape(id).leaves();
        leaves.into_iter().filter_map(Shape::as_array).map(|array| array.element_type)
    };
    of.types.extend(types(id));
    of.types.extend(module.operands(id).iter().flat_map(|&operand| types(operand)));
    let place = usize::from(module.opcode(id) == Opcode::Select);
    of.computed.extend(module.operands(id).get(place).into_iter().flat_map(|&id| types(id)));
    of.sources.insert(source);
}

/// Who computed a fixture's outputs.
fn source(fixture: &Fixture, text: &str) -> &'static str {
    let line = text.lines().find_map(|line| line.split_once("outputs by ")).map(|(_, by)| by);
    match line {
        Some(by) if by.starts_with("XLA:CPU") => "XLA:CPU",
        Some(by) if by.contains("ml_dtypes") => "NumPy and ml_dtypes",
        Some(by) if by.contains("NumPy") => "NumPy",
        Some(by) if by.starts_with("Python") => "Python",
        Some(_) => "by hand",
        None if fixture.hlo.components().any(|part| part.as_os_str() == "devices") => "XLA:CPU",
        None => panic!("{}: nothing says by whom its outputs are", fixture.name),
    }
}

/// Types that are named together where an op has all of them.
const GROUPS: &[(&str, &[ElementType])] = {
    use ElementType::*;
    &[
        ("integers of 8 to 64 bits", &[S8, S16, S32, S64, U8, U16, U32, U64]),
        ("integers of 1 to 4 bits", &[S1, S2, S4, U1, U2, U4]),
        ("floats of 16 to 64 bits", &[F16, BF16, F32, F64]),
        (
            "floats of 4 to 8 bits",
            &[
                F4E2M1FN,
                F6E2M3FN,
                F6E3M2FN,
                F8E3M4,
                F8E4M3,
                F8E4M3FN,
                F8E4M3B11FNUZ,
                F8E4M3FNUZ,
                F8E5M2,
                F8E5M2FNUZ,
                F8E8M0FNU,
            ],
        ),
        ("complex", &[C64, C128]),
    ]
};

fn types(of: &BTreeSet<ElementType>) -> String {
    let mut rest = of.clone();
    let mut names = Vec::new();
    for (name, group) in GROUPS {
        if group.iter().all(|element_type| rest.contains(element_type)) {
            rest.retain(|element_type| !group.contains(element_type));
            names.push((*name).to_owned());
        }
    }
    names.extend(rest.iter().map(ToString::to_string));
    names.join(", ")
}

fn table() -> String {
    let coverage = coverage();
    let mut table = String::from("| op | types in fixtures | results by |\n|---|---|---|\n");
    for opcode in Opcode::ALL {
        let row = match coverage.get(opcode) {
            Some(of) => {
                let sources: Vec<&str> = of.sources.iter().copied().collect();
                format!("| `{opcode}` | {} | {} |\n", types(&of.types), sources.join(", "))
            }
            None => format!("| `{opcode}` | | no fixture |\n"),
        };
        table.push_str(&row);
    }
    table
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/oracle.md")
}

const BEGIN: &str = "<!-- made by crates/interp/tests/oracle.rs -->\n";
const END: &str = "<!-- end -->\n";

/// `just bless` writes the table anew.
#[test]
fn the_page_says_what_the_fixtures_say() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let table = table();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(page(), format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, table, "the fixtures changed: `just bless` writes the table anew");
}

/// No op that admits a class of numbers leaves out some of its types.
#[test]
fn elementwise_ops_have_a_fixture_of_every_type_that_they_admit() {
    let coverage = coverage();
    let mut missing = Vec::new();
    for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.is_elementwise()) {
        let absent = |element_type: &&ElementType| {
            let of = coverage.get(&opcode);
            admits(opcode, **element_type)
                && !of.is_some_and(|of| of.computed.contains(element_type))
        };
        let absent: BTreeSet<ElementType> =
            ElementType::ALL.iter().filter(absent).copied().collect();
        if !absent.is_empty() {
            missing.push(format!("{opcode}: {}", types(&absent)));
        }
    }
    assert!(missing.is_empty(), "without a fixture:\n{}", missing.join("\n"));
}

/// As the verifier has it, less what has no meaning: complex numbers have no
/// remainder, and no bounds.
fn admits(opcode: Opcode, element_type: ElementType) -> bool {
    let class = element_type.class();
    match opcode {
        Opcode::Complex => matches!(element_type, ElementType::F32 | ElementType::F64),
        Opcode::StochasticConvert => class == NumberClass::Float && element_type.bits() >= 16,
        Opcode::Clamp | Opcode::Remainder => opcode.takes(class) && class != NumberClass::Complex,
        other => other.takes(class),
    }
}
