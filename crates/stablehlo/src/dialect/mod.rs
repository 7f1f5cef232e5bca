//! The dialects: **one row declares an op**, and everything else is derived from the rows.
//!
//! | from a row | who derives it |
//! |---|---|
//! | the printed form | the reader (`text/pretty`) and the printer (`print/pretty`) |
//! | the attributes and their defaults | both, and bytecode, which stores them without names |
//! | the versions | portable artifacts (`vhlo`), read and written |
//! | the opcode, or the function that converts it | `import` and `export` |
//!
//! An op of MHLO that has no row is the op of StableHLO with its name. See `docs/add-an-op.md`.

mod attribute;
mod chlo;
mod form;
mod initial;
mod mhlo;
mod others;
mod shardy;
mod stablehlo;

use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};
use tilewright_ir::Opcode;

pub(crate) use attribute::{
    Attr, Field, Joined, Need, Parameter, Structure, ValueKind, WORDS, Words, structure, words,
};
pub(crate) use form::{Own, Part, Types};
pub(crate) use initial::{Initial, api_version, bytes};

use crate::import::{Convert, Function};

/// A version of StableHLO: the major and the minor number.
pub(crate) type Version = (u32, u32);

/// The first version of StableHLO that has portable artifacts.
const FIRST: &[Version] = &[(0, 9)];

/// An op of a dialect.
pub(crate) struct Op {
    /// The name with its dialect.
    pub(crate) name: &'static str,
    /// The attributes that MLIR keeps among the properties, besides those of `base`.
    attributes: &'static [Attr],
    /// Attributes that are one attribute in HLO.
    pub(crate) joined: Option<Joined>,
    /// The printed form; one without parts is the generic form.
    pub(crate) form: &'static [Part],
    /// The names of the results in MLIR's text.
    pub(crate) results: &'static [&'static str],
    /// The attributes of HLO's op that name the computations of the regions.
    pub(crate) regions: &'static [&'static str],
    /// When the versions of the op in VHLO began; none if VHLO does not have it.
    pub(crate) versions: &'static [Version],
    /// The first version of the op that has operands or regions which older ones lack.
    pub(crate) newer: Option<(usize, Newer)>,
    /// Attributes that MLIR did not write into bytecode once, the longest list last.
    pub(crate) added: &'static [&'static [&'static str]],
    /// The op in HLO.
    pub(crate) opcode: Option<Opcode>,
    /// The function that converts it to HLO, where it is not simply `opcode`.
    pub(crate) convert: Option<Convert>,
    /// The formula of its value, for the types of which HLO has no op.
    pub(crate) function: Option<Function>,
    /// Whether JAX exports it as a composite of this name.
    pub(crate) is_composite: bool,
    /// The op of StableHLO whose other attributes it has.
    base: Option<&'static str>,
}

/// The attributes among the properties of an operation, in the order of their encoding.
pub(crate) type Layout = Vec<(&'static str, bool)>;

/// A part of an op that its older versions in VHLO lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Newer {
    /// More operands than one.
    Operands,
    /// Regions.
    Regions,
}

impl Op {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            attributes: &[],
            joined: None,
            form: &[],
            results: &[],
            regions: &[],
            versions: &[],
            newer: None,
            added: &[],
            opcode: None,
            convert: None,
            function: None,
            is_composite: false,
            base: None,
        }
    }

    const fn with(self, attributes: &'static [Attr]) -> Self {
        Self { attributes, ..self }
    }

    const fn joins(self, joined: Joined) -> Self {
        Self { joined: Some(joined), ..self }
    }

    const fn form(self, form: &'static [Part]) -> Self {
        Self { form, ..self }
    }

    const fn yields(self, results: &'static [&'static str]) -> Self {
        Self { results, ..self }
    }

    const fn calls(self, regions: &'static [&'static str]) -> Self {
        Self { regions, ..self }
    }

    const fn since(self, versions: &'static [Version]) -> Self {
        Self { versions, ..self }
    }

    const fn newer(self, version: usize, what: Newer) -> Self {
        Self { newer: Some((version, what)), ..self }
    }

    const fn added(self, added: &'static [&'static [&'static str]]) -> Self {
        Self { added, ..self }
    }

    const fn is(self, opcode: Opcode) -> Self {
        Self { opcode: Some(opcode), ..self }
    }

    const fn by(self, convert: Convert) -> Self {
        Self { convert: Some(convert), ..self }
    }

    const fn computes(self, function: Function) -> Self {
        Self { function: Some(function), ..self }
    }

    const fn composite(self) -> Self {
        Self { is_composite: true, ..self }
    }

    const fn like(self, base: &'static str) -> Self {
        Self { base: Some(base), ..self }
    }

    /// The name without the dialect.
    pub(crate) fn base_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, name)| name)
    }

    /// The attributes of all versions.
    fn all_attributes(&self) -> impl Iterator<Item = &'static Attr> {
        let base = self.base.and_then(op).map_or(&[][..], |base| base.attributes);
        self.attributes.iter().chain(base)
    }

    /// The attributes.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = &'static Attr> {
        self.all_attributes().filter(|attr| attr.until == usize::MAX)
    }

    /// Returns the attribute of this name.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'static Attr> {
        self.attributes().find(|attr| attr.name == name)
    }

    /// Checks whether only older versions of the op in VHLO have an attribute.
    pub(crate) fn is_removed(&self, name: &str) -> bool {
        self.all_attributes().any(|attr| attr.name == name && attr.until != usize::MAX)
    }

    /// Returns the names of the attributes that a version of the op has in VHLO, 1 being the first, in
    /// the order of their encoding.
    pub(crate) fn names_of(&self, version: usize) -> Vec<(&'static str, &'static Attr)> {
        let attributes = self.all_attributes();
        let own = attributes.filter(|attr| (attr.from..=attr.until).contains(&version));
        let names = own
            .flat_map(|attr| attr.names_in_vhlo(version).into_iter().map(move |name| (name, attr)));
        let mut names: Vec<_> = names.collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        names
    }

    /// Returns the layouts that the properties of an operation may have in bytecode: the newest first,
    /// then those of older versions of MLIR. Each attribute comes with whether it may be missing.
    pub(crate) fn layouts(&self) -> Vec<Layout> {
        let mut newest: Vec<&Attr> = self.attributes().collect();
        newest.sort_unstable_by_key(|attr| attr.name);
        let layout = |without: &[&str]| -> Layout {
            let own = newest.iter().filter(|attr| !without.contains(&attr.name));
            own.map(|attr| (attr.name, attr.need != Need::Required)).collect()
        };
        std::iter::once(&[][..]).chain(self.added.iter().copied()).map(layout).collect()
    }

    /// Returns the version of the op in a version of VHLO, if that has it.
    pub(crate) fn version_in(&self, version: Version) -> Option<usize> {
        let began = self.versions.iter().filter(|&&since| since <= version).count();
        (began > 0).then_some(began)
    }
}

/// The tables; of two ops with one opcode, the first is exported.
const TABLES: [&[Op]; 5] = [
    checked(stablehlo::OPS),
    checked(chlo::OPS),
    checked(mhlo::OPS),
    checked(shardy::OPS),
    checked(others::OPS),
];

static BY_NAME: LazyLock<FxHashMap<SmolStr, &'static Op>> = LazyLock::new(|| {
    let of_stablehlo = stablehlo::OPS.iter();
    let of_mhlo = of_stablehlo.map(|op| (format_smolstr!("mhlo.{}", op.base_name()), op));
    let own = TABLES.into_iter().flatten().map(|op| (SmolStr::new_static(op.name), op));
    of_mhlo.chain(own).collect()
});

static BY_OPCODE: LazyLock<FxHashMap<Opcode, &'static Op>> = LazyLock::new(|| {
    let all = TABLES.into_iter().flatten().rev();
    all.filter_map(|op| Some((op.opcode?, op))).collect()
});

/// Returns the op of this name.
pub(crate) fn op(name: &str) -> Option<&'static Op> {
    BY_NAME.get(name).copied()
}

/// Returns the op that an instruction of HLO becomes.
pub(crate) fn of_opcode(opcode: Opcode) -> Option<&'static Op> {
    BY_OPCODE.get(&opcode).copied()
}

/// Returns the op of VHLO with this name and version, `gather_v2`.
pub(crate) fn of_vhlo(name: &str) -> Option<(&'static Op, usize)> {
    let (base, version) = name.rsplit_once("_v")?;
    let version = version.parse().ok()?;
    let ops = ["stablehlo", "func"].map(|dialect| op(&format_smolstr!("{dialect}.{base}")));
    let op = ops.into_iter().flatten().find(|op| !op.versions.is_empty())?;
    (1..=op.versions.len()).contains(&version).then_some((op, version))
}

/// Returns the names of all ops with a printed form.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.into_iter().flatten().filter(|op| !op.form.is_empty()).map(|op| op.name)
}

/// Checks each row while this crate is compiled; the error names the op of a row that does not fit.
const fn checked(ops: &'static [Op]) -> &'static [Op] {
    let mut at = 0;
    while at < ops.len() {
        forms_say_attributes_of_the_row(&ops[at], ops[at].form);
        hlo_has_the_attributes(&ops[at]);
        at += 1;
    }
    ops
}

const fn forms_say_attributes_of_the_row(op: &Op, form: &[Part]) {
    let mut at = 0;
    while at < form.len() {
        match form[at] {
            Part::Attribute(name) => assert!(op.base.is_some() || has(op, name), "{}", op.name),
            Part::Maybe(parts) => forms_say_attributes_of_the_row(op, parts),
            _ => {}
        }
        at += 1;
    }
}

const fn has(op: &Op, name: &str) -> bool {
    let mut at = 0;
    while at < op.attributes.len() {
        if same(op.attributes[at].name, name) {
            return true;
        }
        at += 1;
    }
    false
}

const fn hlo_has_the_attributes(op: &Op) {
    let Some(opcode) = op.opcode else { return };
    let mut at = 0;
    while at < op.attributes.len() {
        if let Some(name) = op.attributes[at].hlo {
            let (specs, mut number) = (opcode.attrs(), 0);
            while number < specs.len() && !same(specs[number].name, name) {
                number += 1;
            }
            assert!(number < specs.len(), "{}", op.name);
        }
        at += 1;
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}
