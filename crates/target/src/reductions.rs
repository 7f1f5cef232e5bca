//! The measured times of an engine's reductions, form by form.
//!
//! A compiler takes very different times for one reduction, depending on the form in which it is
//! written: the place of a maximum along a long dim takes XLA:CPU 30 times as long as the same place
//! found eight slices at a time. Which form is fast follows from no model that is simpler than the
//! compiler, so an engine's file has what was measured: for each kind of reduction
//! ([`ReductionFeatures`]), the nanoseconds per element of each form ([`Form`]).
//! `benches/calibrate.py` writes it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use tilewright_ir::ElementType;

use crate::rule::shorten;

/// Declares an enum whose variants have names in engine files.
macro_rules! named {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $of:literal])* $variant:ident = $text:literal,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $of])* $variant,)*
        }

        impl $name {
            /// Every variant.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name in engine files and notes.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Returns the variant of this name.
            fn from_name(name: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|one| one.name() == name);
                let known = || Self::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
                found.ok_or_else(|| format!("`{}` is none of {}", shorten(name), known()))
            }
        }
    };
}

named! {
    /// The operation of a reduction.
    Folding {
        /// A sum.
        Sum = "sum",
        /// A product.
        Product = "product",
        /// A maximum or minimum.
        Extremum = "extremum",
        /// An `and`, `or` or `xor`.
        Logical = "logical",
        /// A maximum or minimum and its place.
        Place = "place",
        /// Several of the others at once, of several arrays.
        Several = "several",
    }
}

named! {
    /// Where the elements of a reduction come from. A value that others read as well is of the last of these
    /// kinds that it has a part of.
    Source {
        /// From an array in memory.
        Stored = "stored",
        /// From elementwise ops that only the reduction needs.
        Computed = "computed",
        /// From a value that others read as well: sums, products and quotients.
        Shared = "shared",
        /// From such a value of several arrays.
        SharedArrays = "shared-arrays",
        /// From such a value with a scalar for all elements.
        SharedScalar = "shared-scalar",
        /// From such a value with a broadcast that has the innermost dim.
        SharedRow = "shared-row",
        /// From such a value with a broadcast along the innermost dim.
        SharedColumn = "shared-column",
        /// From such a value that is converted from floats of 16 bits.
        SharedNarrow = "shared-narrow",
        /// From such a value that is computed in floats of 16 bits.
        SharedRounded = "shared-rounded",
        /// From such a value with a root, an exponential or another function.
        SharedFunction = "shared-function",
        /// From such a value with comparisons and selections.
        SharedChoice = "shared-choice",
    }
}

named! {
    /// How a row-major array is reduced. Neighbouring dims that are all kept or all reduced are one
    /// *axis*.
    Walk {
        /// All dims are reduced.
        Whole = "whole",
        /// One reduced axis, the innermost one.
        Rows = "rows",
        /// One reduced axis, which is not the innermost one.
        Columns = "columns",
        /// Several reduced axes, one of them the innermost one.
        MixedRows = "mixed-rows",
        /// Several reduced axes; the innermost axis is kept.
        MixedColumns = "mixed-columns",
    }
}

named! {
    /// A form in which a reduction can be written. The forms are equal but for the order of the
    /// elements, and [`Form::InF32`] for the type in which they are combined.
    Form {
        /// As the program has it.
        AsIs = "as-is",
        /// Accumulated in f32 and rounded once; of floats of 16 bits.
        InF32 = "in-f32",
        /// Neighbouring dims of one axis merged into one dim.
        Merged = "merged",
        /// Few slices at a time, by one reduce after the other.
        Folds = "folds",
        /// Few slices at a time, the first time by a reduce, then by windows.
        Windows = "windows",
        /// The longest outer axis first, down to so few slices that what is left inside is long.
        Wide = "wide",
        /// The columns along the innermost axis, combined one by one.
        Columns = "columns",
        /// The reduction computes a copy of a shared value for itself, where it reduces it.
        Copied = "copied",
        /// A kernel of this CPU reduces a stored array: a custom call, on request alone.
        Kernel = "kernel",
    }
}

/// The properties of a reduction that its time depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReductionFeatures {
    /// Its operation.
    pub folding: Folding,
    /// The type of the (first) array.
    pub element_type: ElementType,
    /// Where its elements come from.
    pub source: Source,
    /// How it is walked.
    pub walk: Walk,
    /// Whether several neighbouring dims make up a reduced axis.
    pub nested: bool,
    /// Whether several reductions read a shared value.
    pub several: bool,
    /// The length of the innermost axis; for a shared value, of the innermost dim.
    pub innermost: i64,
    /// The length of the longest reduced axis.
    pub longest: i64,
    /// The number of elements that it reduces.
    pub elements: i64,
}

/// The time of a form.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Time {
    form: Form,
    /// Nanoseconds per element, the mean of programs that were drawn.
    ns: f64,
    /// The worst of them beside the mean, as a factor of at least 1.
    spread: f64,
}

impl Time {
    /// Returns the nanoseconds per element of the worst program that was measured.
    fn worst(self) -> f64 {
        self.ns * self.spread
    }
}

/// A kind of reduction: all whose times one cell has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CellKey {
    folding: Folding,
    element_type: ElementType,
    source: Source,
    walk: Walk,
    nested: bool,
    /// Whether a shared value has [`Reductions::large_elements`] and more.
    large: bool,
    /// Whether several reductions read a shared value.
    several: bool,
    /// The least length of the innermost axis: one of [`Reductions::innermost`].
    innermost: i64,
    /// The least length of the longest reduced axis: one of [`Reductions::longest`].
    longest: i64,
}

/// The measured times of one kind of reduction.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    /// Nanoseconds per element of the reduction as it is.
    as_is: f64,
    /// The times of forms that are faster.
    others: Vec<Time>,
}

/// The measured reductions of an engine. Empty if nobody measured any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reductions {
    /// The engine, its version, the machine and the date.
    pub measured: String,
    /// The fewest elements of a reduction that is looked up.
    pub least_elements: i64,
    /// The fewest elements of a shared value that is looked up among large ones.
    pub large_elements: i64,
    /// The nanoseconds that a call of a kernel takes besides its work.
    pub kernel_call_ns: f64,
    /// The lengths at which the cells' ranges of the innermost axis begin.
    pub innermost: Vec<i64>,
    /// The lengths at which the cells' ranges of the longest reduced axis begin.
    pub longest: Vec<i64>,
    /// The cells, a line each.
    pub cells: Cells,
}

/// The cells of a table, in a file one line each:
///
/// ```text
/// sum f32 stored mixed-rows nested 2 33 | as-is 0.601 | wide 0.154 x1.43 | columns 0.132 x1.26
/// ```
///
/// A line names the operation, the element type, the source and the walk, says whether dims are `nested`
/// and whether a shared value is `large` and read by `several` reductions (all that counts for shared values
/// beside the innermost dim and whether it is reduced: `rows` or `columns`), and gives the least length of the innermost axis and of the longest reduced one. Then come the forms,
/// each with its nanoseconds per element and its spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cells {
    cells: BTreeMap<CellKey, Cell>,
    /// The nanoseconds per element of the fastest kind of each type and source.
    fastest: BTreeMap<(ElementType, Source), f64>,
}

impl TryFrom<String> for Cells {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut found = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let at = |why| format!("line {} of `cells`: {why}", number + 1);
            let (kind, cell) = Cell::parse(line).map_err(at)?;
            let fastest =
                found.fastest.entry((kind.element_type, kind.source)).or_insert(cell.as_is);
            *fastest = fastest.min(cell.as_is);
            if found.cells.insert(kind, cell).is_some() {
                return Err(at("a cell for these reductions stands before".to_owned()));
            }
        }
        Ok(found)
    }
}

impl From<Cells> for String {
    fn from(cells: Cells) -> Self {
        cells.cells.iter().map(|(kind, cell)| format!("{kind}{cell}\n")).collect()
    }
}

impl Reductions {
    /// Checks whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.cells.cells.is_empty()
    }

    /// Returns the cell of a reduction; `None` if nobody measured one like it.
    fn cell(&self, of: &ReductionFeatures) -> Option<&Cell> {
        if of.elements < self.least_elements {
            return None;
        }
        let innermost = beginning(&self.innermost, of.innermost)?;
        let longest = beginning(&self.longest, of.longest)?;
        let ReductionFeatures { folding, element_type, source, walk, nested, several, .. } = *of;
        let own = CellKey {
            folding,
            element_type,
            source,
            walk,
            nested,
            large: false,
            several: false,
            innermost,
            longest,
        };
        let kind = if source.is_shared() {
            let walk = if walk.has_rows() { Walk::Rows } else { Walk::Columns };
            let large = of.elements >= self.large_elements;
            CellKey { walk, nested: false, large, several, longest: *self.longest.first()?, ..own }
        } else {
            own
        };
        self.cells.cells.get(&kind)
    }

    /// Returns the nanoseconds per element of a reduction as it is, beyond those of the fastest
    /// measured reduction of the same elements: 0 if nobody measured it.
    pub fn excess(&self, of: &ReductionFeatures) -> f64 {
        let fastest = self.cells.fastest.get(&(of.element_type, of.source));
        let cell = self.cell(of).zip(fastest);
        cell.map_or(0.0, |(cell, fastest)| cell.as_is - fastest)
    }

    /// Returns the fastest form of a reduction among those that `can` be written, with its
    /// nanoseconds per element and those of the reduction as it is. `None` unless even the worst
    /// program of that form was faster than the reduction as it is.
    pub fn best(
        &self,
        of: &ReductionFeatures,
        can: impl Fn(Form) -> bool,
    ) -> Option<(Form, [f64; 2])> {
        let cell = self.cell(of)?;
        let faster = cell.others.iter().filter(|time| time.worst() < cell.as_is);
        let written = faster.filter(|time| can(time.form));
        let best = written.min_by(|a, b| a.worst().total_cmp(&b.worst()))?;
        Some((best.form, [best.ns, cell.as_is]))
    }

    /// Returns the nanoseconds per element of the worst measured call of a kernel, and of the fastest of the
    /// other forms. `None` if nobody measured a kernel that was faster.
    pub fn kernel(&self, of: &ReductionFeatures) -> Option<[f64; 2]> {
        let cell = self.cell(of)?;
        let kernel = cell.others.iter().find(|time| time.form == Form::Kernel)?.worst();
        let others = cell.others.iter().filter(|time| time.form != Form::Kernel);
        let fastest = others.fold(cell.as_is, |least, time| least.min(time.ns));
        (kernel < fastest).then_some([kernel, fastest])
    }

    /// Returns what is wrong with the table, as the end of a sentence.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        if self.measured.trim().is_empty() {
            return Some("does not say in `measured` which engine, machine and date".to_owned());
        }
        if self.large_elements < 1 && self.cells.cells.keys().any(|kind| kind.source.is_shared()) {
            return Some("has shared values, and no `large_elements` of 1 or more".to_owned());
        }
        if !(0.0..=MOST_NS).contains(&self.kernel_call_ns) {
            return Some(format!("has a `kernel_call_ns` that is not from 0 to {MOST_NS}"));
        }
        for (name, starts) in [("innermost", &self.innermost), ("longest", &self.longest)] {
            let increase = starts.windows(2).all(|pair| pair[0] < pair[1]);
            if starts.first().is_none_or(|&least| least < 1) || !increase {
                return Some(format!("has `{name}` that are not increasing from 1 or more"));
            }
        }
        let is_between = |kind: &&CellKey| {
            !self.innermost.contains(&kind.innermost) || !self.longest.contains(&kind.longest)
        };
        let between = self.cells.cells.keys().find(is_between)?;
        Some(format!(
            "has a cell that begins at lengths that `innermost` and `longest` do not list: {between}"
        ))
    }
}

impl Walk {
    /// Checks whether the innermost axis is reduced.
    pub fn has_rows(self) -> bool {
        matches!(self, Self::Whole | Self::Rows | Self::MixedRows)
    }
}

impl Source {
    /// Checks whether others read the value as well.
    pub fn is_shared(self) -> bool {
        !matches!(self, Self::Stored | Self::Computed)
    }
}

impl Cell {
    /// Reads a line of [`Cells`].
    fn parse(line: &str) -> Result<(CellKey, Self), String> {
        let mut parts = line.split('|');
        let kind = CellKey::parse(parts.next().unwrap_or_default())?;
        let (mut as_is, mut others) = (None, Vec::new());
        for part in parts {
            let time = Time::parse(part)?;
            let is_again = match time.form {
                Form::AsIs => as_is.replace(time.ns).is_some(),
                _ => others.iter().any(|other: &Time| other.form == time.form),
            };
            if is_again {
                return Err("has two times for one form".into());
            }
            others.extend((time.form != Form::AsIs).then_some(time));
        }
        let as_is = as_is.ok_or("has no time for the form `as-is`")?;
        Ok((kind, Self { as_is, others }))
    }
}

impl CellKey {
    /// Reads the part of a line before the first `|`.
    fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[folding, element_type, source, walk, ref flags @ .., innermost, longest] =
            words.as_slice()
        else {
            return Err("needs what, type, source, walk and two lengths before the `|`".into());
        };
        let mut flags = flags.iter().copied().peekable();
        let [nested, large, several] =
            ["nested", "large", "several"].map(|flag| flags.next_if_eq(&flag).is_some());
        if let Some(flag) = flags.next() {
            return Err(format!("`{}` is none of nested, large, several", shorten(flag)));
        }
        let (source, walk) = (Source::from_name(source)?, Walk::from_name(walk)?);
        if (large || several) && !source.is_shared() {
            return Err("is `large` or `several`, which shared values alone are".into());
        }
        if source.is_shared() && (nested || !matches!(walk, Walk::Rows | Walk::Columns)) {
            return Err("has a shared value, which is read in `rows` or `columns` alone".into());
        }
        let length =
            |word: &str| word.parse().map_err(|_| format!("`{}` is no length", shorten(word)));
        Ok(Self {
            folding: Folding::from_name(folding)?,
            element_type: ElementType::from_name(element_type)
                .ok_or_else(|| format!("`{}` is no element type", shorten(element_type)))?,
            source,
            walk,
            nested,
            large,
            several,
            innermost: length(innermost)?,
            longest: length(longest)?,
        })
    }
}

impl Time {
    /// Reads the part of a cell about one form: `wide 0.154 x1.43`.
    fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (form, ns, spread) = match words.as_slice() {
            [form, ns] => (*form, *ns, "1"),
            [form, ns, spread] => (*form, *ns, spread.strip_prefix('x').unwrap_or(spread)),
            _ => return Err(format!("`{}` is no form with its time", shorten(text.trim()))),
        };
        let number = |word: &str, least: f64| {
            let found = word.parse().ok().filter(|x| (least..=MOST_NS).contains(x));
            found.ok_or_else(|| {
                format!("`{}` is no number from {least} to {MOST_NS}", shorten(word))
            })
        };
        let (ns, spread) = (number(ns, LEAST_NS)?, number(spread, 1.0)?);
        Ok(Self { form: Form::from_name(form)?, ns, spread })
    }
}

impl fmt::Display for CellKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (folding, element_type) = (self.folding.name(), self.element_type.name());
        let (source, walk) = (self.source.name(), self.walk.name());
        write!(f, "{folding} {element_type} {source} {walk}")?;
        let flags = [(self.nested, "nested"), (self.large, "large"), (self.several, "several")];
        for (_, flag) in flags.iter().filter(|(is_so, _)| *is_so) {
            write!(f, " {flag}")?;
        }
        write!(f, " {} {}", self.innermost, self.longest)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " | {} {}", Form::AsIs.name(), self.as_is)?;
        for Time { form, ns, spread } in &self.others {
            write!(f, " | {} {ns} x{spread}", form.name())?;
        }
        Ok(())
    }
}

/// The least and the most nanoseconds per element: far past any machine.
const LEAST_NS: f64 = 1e-6;
const MOST_NS: f64 = 1e9;

/// Returns the greatest start that is not beyond a length.
fn beginning(starts: &[i64], length: i64) -> Option<i64> {
    starts.iter().copied().rev().find(|&start| start <= length)
}
