//! Explanations as text.

use std::fmt;

use tilewright::report::cycles;
use tilewright::{Note, Outcome};

use super::{Explanation, Layer, Obstacle};

/// The most layers that are shown.
const MOST_LAYERS: usize = 12;

/// The most obstacles that are shown.
const MOST_OBSTACLES: usize = 3;

/// The layers that save most, and the obstacles.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.headline(f)?;
        for (number, layer) in (1..).zip(self.layers.iter().take(MOST_LAYERS)) {
            write!(f, "\n{number:>3}. {layer}")?;
        }
        self.more_layers(f)?;
        if !self.obstacles.is_empty() {
            f.write_str("\nCould not be rewritten:")?;
        }
        for obstacle in self.obstacles.iter().take(MOST_OBSTACLES) {
            write!(f, "\n  - {obstacle}")?;
        }
        let costs_more = self.notes.iter().filter(|note| is_too_dear(note)).count();
        let hidden = self.obstacles.len().saturating_sub(MOST_OBSTACLES);
        if costs_more > 0 || hidden > 0 || self.layers.len() > MOST_LAYERS {
            f.write_str("\n--explain=all lists every rewrite")?;
            if costs_more > 0 {
                write!(f, ", and {costs_more} that would cost more than they save")?;
            }
            f.write_str(".")?;
        }
        Ok(())
    }
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
            count => write!(
                f,
                "{} rewritten: {} modelled cycles on {target} instead of {} ({}).",
                tilewright::report::counted(count, "layer"),
                cycles(after),
                cycles(before),
                ratio(self.cycles),
            ),
        }
    }

    fn more_layers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = self.layers.get(MOST_LAYERS..).unwrap_or_default();
        if more.is_empty() {
            return Ok(());
        }
        let sum = |when: usize| more.iter().map(|layer| layer.cycles[when]).sum::<f64>();
        let (before, after) = (sum(0), sum(1));
        write!(
            f,
            "\n     and {} more: {} cycles instead of {} ({})",
            more.len(),
            cycles(after),
            cycles(before),
            ratio([before, after])
        )
    }

    /// Returns the text with every layer, every obstacle and every note.
    pub fn all(&self) -> All<'_> {
        All(self)
    }
}

/// Two lines: what and where it is, and what became of it.
impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.scope.is_empty() { "outside of all scopes" } else { &self.scope };
        write!(f, "{name}: {}", self.pattern)?;
        if let Some(source) = &self.source {
            write!(f, " ({})", short(source))?;
        }
        let [before, after] = self.cycles;
        let saved = format!("{} cycles instead of {}", cycles(after), cycles(before));
        write!(f, "\n     {}: {saved}", ratio(self.cycles))?;
        if let [Some(before), Some(after)] = self.bytes.map(|bytes| self.times(bytes)) {
            // Another layer's instruction may read the array for this one.
            match after < 0.95 {
                true => write!(f, ", its array read or written less than once")?,
                false => write!(f, ", its array read or written {after:.1} times")?,
            }
            write!(f, " instead of {before:.1} times")?;
        }
        let passes = self.rewrites.iter().map(|(pass, &count)| match count {
            1 => (*pass).to_owned(),
            _ => format!("{pass} {count} times"),
        });
        write!(f, "; {}", passes.collect::<Vec<_>>().join(", "))
    }
}

impl Layer {
    /// Returns how often these bytes hold the layer's largest array.
    #[expect(clippy::cast_precision_loss, reason = "shown to a tenth")]
    fn times(&self, bytes: u64) -> Option<f64> {
        (self.array_bytes > 0).then(|| bytes as f64 / self.array_bytes as f64)
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
        for (number, layer) in (1..).zip(layers) {
            write!(f, "\n{number:>3}. {layer}")?;
        }
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
