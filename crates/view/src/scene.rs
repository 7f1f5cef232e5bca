//! What is asked for, and what is drawn of it.

use std::path::Path;

use tilewright::Outcome;
use tilewright::ir::{CompId, Module};
use tilewright::{CostModel, Memo};
use tilewright::{Note, Report, Target};

use crate::error::ViewError;
use crate::picture::Picture;
use crate::{build, change, dot, focus, html, svg, words};

/// The most nodes that are laid out as SVG.
const MOST_IN_SVG: usize = 800;
/// The most nodes that are written for Graphviz, which takes minutes for more.
const MOST_IN_DOT: usize = 5000;

/// What is drawn, and for which machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The target: it decides what is padded, what is large and what moves data.
    pub target: Target,
    /// What colours nodes.
    pub weights: Weights,
    /// The part that is drawn.
    pub subject: Subject,
}

impl Options {
    /// The whole module, for a target, without costs.
    pub fn new(target: Target) -> Self {
        Self { target, weights: Weights::None, subject: Subject::Module }
    }

    /// Sets what colours nodes.
    #[must_use]
    pub fn with_weights(self, weights: Weights) -> Self {
        Self { weights, ..self }
    }

    /// Sets the part that is drawn.
    #[must_use]
    pub fn with_subject(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }
}

/// What colours nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Weights {
    /// Their kind.
    #[default]
    None,
    /// Their share of the module's modelled cycles.
    Cycles,
    /// Their share of a measured time: the text is what `tilewright run --profile --json` writes.
    Profile(String),
}

/// The part of a module that is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// All that the entry computation runs.
    #[default]
    Module,
    /// A computation with all that it calls.
    Computation(String),
    /// An instruction with the operands and users that are at most so many edges away.
    Around {
        /// The instruction's name.
        name: String,
        /// The number of edges.
        depth: usize,
    },
}

/// The form of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// The language of Graphviz.
    Dot,
    /// A drawing.
    Svg,
    /// A page with a drawing whose boxes open and close.
    Html,
}

impl Emit {
    /// Returns the form that a file name asks for.
    ///
    /// # Errors
    /// Returns an error if the name ends in none of `.dot`, `.gv`, `.svg`, `.html` and `.htm`.
    pub fn of_path(path: &Path) -> Result<Self, ViewError> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("dot" | "gv") => Ok(Self::Dot),
            Some("svg") => Ok(Self::Svg),
            Some("html" | "htm") => Ok(Self::Html),
            _ => Err(ViewError::UnknownForm(path.display().to_string())),
        }
    }
}

/// A picture of a module, or two beside each other.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The module's name.
    pub title: String,
    /// What is drawn and for which machine, in words.
    pub subtitle: String,
    /// What nodes are coloured by: `modelled cycles`, `measured time`, or nothing.
    pub weights: Option<&'static str>,
    /// The module, or the module before and after.
    pub sides: Vec<Side>,
    /// The notes on rewrites that were made.
    pub notes: Vec<Note>,
}

/// One of the pictures of a scene.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its heading: `before` or `after`; empty if it is alone.
    pub title: String,
    /// The picture.
    pub picture: Picture,
}

impl Scene {
    /// Draws a module.
    ///
    /// # Errors
    /// Returns an error if what is asked for is not in the module, or a profile is not of it.
    pub fn of(module: &Module, options: &Options) -> Result<Self, ViewError> {
        let mut picture = picture(module, options)?;
        if let Subject::Around { name, depth } = &options.subject {
            let near = focus::near(module, &picture, name, *depth)?;
            picture = focus::only(&picture, &near);
        }
        let sides = vec![Side { title: String::new(), picture }];
        Ok(Self::with_sides(module, options, sides, Vec::new(), String::new()))
    }

    /// Draws a module before and after an optimisation. Nodes that differ are marked, with the notes
    /// that explain them.
    ///
    /// # Errors
    /// Returns an error as [`Scene::of`] does. A part that one of the modules does not have is left
    /// empty there.
    pub fn before_and_after(
        before: &Module,
        after: &Module,
        report: &Report,
        options: &Options,
    ) -> Result<Self, ViewError> {
        let notes: Vec<Note> =
            report.notes.iter().filter(|note| note.outcome == Outcome::Done).cloned().collect();
        let was = picture(before, options)?;
        let is = match picture(after, options) {
            Err(ViewError::NoComputation { .. } | ViewError::OtherProfile(_)) => Picture::default(),
            other => other?,
        };
        let mut sides = [was, is];
        change::mark(&mut sides, &notes);
        if let Subject::Around { name, depth } = &options.subject {
            let near = focus::near_in_both([before, after], &sides, name, *depth)?;
            for (side, near) in sides.iter_mut().zip(near) {
                *side = focus::only(side, &near);
            }
        }
        let [was, is] = sides;
        let (old, new) = (words::cycles(report.before.cycles), words::cycles(report.after.cycles));
        let gain = format!(" · {old} before, {new} after (a model)");
        let side = |title: &str, picture| Side { title: title.to_owned(), picture };
        let sides = vec![side("before", was), side("after", is)];
        Ok(Self::with_sides(before, options, sides, notes, gain))
    }

    fn with_sides(
        module: &Module,
        options: &Options,
        sides: Vec<Side>,
        notes: Vec<Note>,
        more: String,
    ) -> Self {
        let part = match &options.subject {
            Subject::Module => String::new(),
            Subject::Computation(name) => format!(" · computation {name}"),
            Subject::Around { name, depth } => format!(" · at most {depth} edges from {name}"),
        };
        let count = tilewright::report::counted(module.instruction_count(), "instruction");
        let subtitle = format!("{count} · target {}{part}{more}", options.target.name);
        let weights = match options.weights {
            Weights::None => None,
            Weights::Cycles => Some("modelled cycles"),
            Weights::Profile(_) => Some("measured time"),
        };
        Self { title: module.name.to_string(), subtitle, weights, sides, notes }
    }

    /// The subtitle, with what nodes are coloured by.
    pub(crate) fn full_subtitle(&self) -> String {
        let weights = self.weights.map(|weights| format!(" · coloured by {weights}"));
        format!("{}{}", self.subtitle, weights.unwrap_or_default())
    }

    /// Writes the picture.
    ///
    /// # Errors
    /// Returns an error if there are too many nodes for the form, or the layout fails.
    pub fn print(&self, emit: Emit) -> Result<String, ViewError> {
        match emit {
            Emit::Dot => {
                self.at_most(MOST_IN_DOT, "a graph for Graphviz")?;
                Ok(dot::print(self))
            }
            Emit::Svg => {
                self.at_most(MOST_IN_SVG, "an SVG")?;
                svg::print(self)
            }
            Emit::Html => html::print(self),
        }
    }

    fn at_most(&self, most: usize, form: &'static str) -> Result<(), ViewError> {
        let nodes = self.sides.iter().map(|side| side.picture.nodes.len()).sum();
        if nodes > most { Err(ViewError::TooLarge { form, nodes, most }) } else { Ok(()) }
    }
}

fn picture(module: &Module, options: &Options) -> Result<Picture, ViewError> {
    let root: CompId = match &options.subject {
        Subject::Computation(name) => focus::computation(module, name)?,
        Subject::Module | Subject::Around { .. } => module.entry().ok_or(ViewError::NoEntry)?,
    };
    let memo = Memo::default();
    build::draw(module, root, CostModel::new(&options.target, &memo), &options.weights)
}
