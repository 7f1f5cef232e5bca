//! Explanations as text.

use std::fmt;

use tilewright::report::{bytes, cycles};
use tilewright::{Note, Outcome};

use super::{Explanation, Layer, Obstacle};

/// The most layers that are shown.
const MOST_LAYERS: usize = 12;

/// Says how a module gets names of layers.
const NO_LAYERS: &str = "Its instructions have no names of layers. JAX gives them with debug_info=True: \
                         jax.jit(f).lower(*args).as_text(\"hlo\", debug_info=True)";

/// The least part of what is saved for which a layer is shown.
const LEAST_SHARE: f64 = 0.01;

/// The most obstacles that are shown.
const MOST_OBSTACLES: usize = 3;

/// The layers that save most, and the obstacles.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.headline(f)?;
        let all = self.saved();
        let shown = self
            .layers
            .iter()
            .take(MOST_LAYERS)
            .take_while(|layer| share(layer, all) >= LEAST_SHARE);
        let shown = self.numbered(f, shown)?;
        self.more_layers(f, shown)?;
        self.now_what(f)?;
        if !self.obstacles.is_empty() {
            f.write_str("\nCould not be rewritten:")?;
        }
        for obstacle in self.obstacles.iter().take(MOST_OBSTACLES) {
            write!(f, "\n  - {obstacle}")?;
        }
        let costs_more = self.notes.iter().filter(|note| is_too_dear(note)).count();
        let hidden = self.obstacles.len().saturating_sub(MOST_OBSTACLES);
        if costs_more > 0 || hidden > 0 || self.layers.len() > shown {
            f.write_str("\n--explain=all lists every rewrite")?;
            if costs_more > 0 {
                write!(f, ", and {costs_more} that would cost more than they save")?;
            }
            f.write_str(".")?;
        }
        Ok(())
    }
}

/// Returns the part of all saved cycles that a layer saves.
fn share(layer: &Layer, all: f64) -> f64 {
    if all > 0.0 { layer.saved() / all } else { 0.0 }
}

fn is_too_dear(note: &Note) -> bool {
    note.outcome == Outcome::Left && note.cycles.is_some()
}

impl Explanation {
    fn headline(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = self.cycles;
        let target = &self.target;
        match self.layers.len() {
            0 => {
                write!(
                    f,
                    "Nothing was rewritten: {} modelled cycles on {target}.",
                    cycles(before)
                )?;
                match self.stopped_after {
                    None => Ok(()),
                    Some(0) => {
                        f.write_str("\nThe optimiser was told to stop before the first rewrite.")
                    }
                    Some(rewrites) => {
                        let rewrites = usize::try_from(rewrites).unwrap_or(usize::MAX);
                        let told = tilewright::report::counted(rewrites, "rewrite");
                        write!(f, "\nThe optimiser was told to stop after {told}, and kept none.")
                    }
                }
            }
            count => {
                write!(
                    f,
                    "{} rewritten: the module takes {} modelled cycles on {target} instead of {} ({}).",
                    tilewright::report::counted(count, "layer"),
                    cycles(after),
                    cycles(before),
                    ratio(self.cycles),
                )?;
                let error = self.ratio_error;
                write!(f, "\n{}", tilewright::report::ratio_words(target, error))?;
                match self.layers.iter().all(|layer| layer.scope.is_empty()) {
                    true => write!(f, "\n{NO_LAYERS}"),
                    false => Ok(()),
                }
            }
        }
    }

    /// Writes layers with their numbers, and returns how many there were.
    fn numbered<'a>(
        &self,
        f: &mut fmt::Formatter<'_>,
        layers: impl Iterator<Item = &'a Layer>,
    ) -> Result<usize, fmt::Error> {
        let (all, mut count) = (self.saved(), 0usize);
        for layer in layers {
            count = count.saturating_add(1);
            let saved = 100.0 * share(layer, all);
            write!(f, "\n{count:>3}. {layer}; {saved:.0} % of what is saved")?;
            layer.passes(f)?;
        }
        Ok(count)
    }

    /// Writes where the cycles go in a module in which nothing was rewritten, and what can be done.
    fn now_what(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares: Vec<String> = self
            .shares
            .iter()
            .filter(|share| share.share >= LEAST_SHARE)
            .map(ToString::to_string)
            .collect();
        if !shares.is_empty() {
            let caveat = self.caveat.map(|caveat| format!(" ({caveat})")).unwrap_or_default();
            write!(f, "\nIts cycles go to {}{caveat}.", shares.join(", "))?;
        }
        match (shares.is_empty(), self.remedies.is_empty()) {
            (_, false) => f.write_str("\nWhat can be done:")?,
            (false, true) => write!(f, "\nNothing in it is known to be slow on {}.", self.target)?,
            (true, true) => {}
        }
        self.remedies.iter().try_for_each(|remedy| write!(f, "\n  - {remedy}"))
    }

    /// Returns the cycles that all layers save.
    fn saved(&self) -> f64 {
        self.layers.iter().map(|layer| layer.saved().max(0.0)).sum()
    }

    fn more_layers(&self, f: &mut fmt::Formatter<'_>, shown: usize) -> fmt::Result {
        let more = self.layers.get(shown..).unwrap_or_default();
        if more.is_empty() {
            return Ok(());
        }
        let sum = |when: usize| more.iter().map(|layer| layer.cycles[when]).sum::<f64>();
        let (before, after) = (cycles(sum(0)), cycles(sum(1)));
        write!(f, "\n     and {} more: {after} cycles instead of {before}", more.len())
    }

    /// Returns the text with every layer, every obstacle and every note.
    pub fn all(&self) -> All<'_> {
        All(self)
    }
}

/// Two lines: what and where it is, and what became of it.
impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.scope.is_empty() { "outside of all layers" } else { &self.scope };
        write!(f, "{name}")?;
        if let Some(source) = &self.source {
            write!(f, " ({})", short(source))?;
        }
        let [before, after] = self.cycles;
        let ratio = ratio(self.cycles);
        write!(
            f,
            ": {}\n     {} cycles instead of {} ({ratio})",
            self.pattern,
            cycles(after),
            cycles(before)
        )?;
        let [before, after] = self.bytes.map(bytes);
        write!(f, ", {after} read and written instead of {before}")
    }
}

impl Layer {
    /// Writes the passes that rewrote it, on a line of their own.
    fn passes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passes = self.rewrites.iter().map(|(pass, &count)| match count {
            1 => (*pass).to_owned(),
            _ => format!("{pass} {count} times"),
        });
        write!(f, "\n     by {}", passes.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at {}", self.why, self.place)?;
        if let Some(more) = self.count.checked_sub(1).filter(|&more| more > 0) {
            write!(f, " and {more} more")?;
        }
        match self.advice {
            Some(advice) => write!(f, "\n    what helps: {advice}"),
            None => Ok(()),
        }
    }
}

/// Everything that an [`Explanation`] has; see [`Explanation::all`].
#[derive(Clone, Copy, Debug)]
pub struct All<'a>(&'a Explanation);

impl fmt::Display for All<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { layers, obstacles, notes, .. } = self.0;
        self.0.headline(f)?;
        self.0.numbered(f, layers.iter())?;
        self.0.now_what(f)?;
        if !obstacles.is_empty() {
            f.write_str("\nCould not be rewritten:")?;
        }
        for obstacle in obstacles {
            write!(f, "\n  - {obstacle}")?;
        }
        if notes.is_empty() {
            return Ok(());
        }
        write!(f, "\n\n{}", tilewright::Notes::of(notes))
    }
}

fn ratio([before, after]: [f64; 2]) -> String {
    if after > 0.0 { format!("{:.2}x", before / after) } else { "all gone".to_owned() }
}

/// Returns the last two parts of a path.
fn short(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    let start = slashes.nth(1).and_then(|at| at.checked_add(1)).unwrap_or(0);
    path.get(start..).unwrap_or(path)
}
