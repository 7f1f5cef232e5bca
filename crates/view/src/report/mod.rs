//! What an optimisation found and did, as one page: figures, layers, lines of the program, pictures.

mod pictures;
mod plot;
mod sources;

use askama::Template;
use tilewright::ir::Module;
use tilewright::report::{MemoryReport, cycles, ratio_words};
use tilewright::{Note, Optimized, Target};
use tilewright_tools::explain::Explanation;

use crate::error::ViewError;
use pictures::LayerPicture;
use sources::SourceRow;

/// The most layers that are plotted and drawn.
const MOST_PLOTTED: usize = 12;

/// What a report is about.
#[derive(Clone, Copy, Debug)]
pub struct Findings<'a> {
    /// The simplest forms of the module before and after: see [`tilewright::simplest_forms`].
    pub forms: [&'a Module; 2],
    /// The module after, and what was done.
    pub optimized: &'a Optimized,
    /// The rewrites of each layer.
    pub explanation: &'a Explanation,
    /// The target that costs are modelled for.
    pub target: &'a Target,
    /// The verdict of a check, in words; `None` if the modules were not compared.
    pub verdict: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: &'a str,
    headline: String,
    worth: String,
    figures: String,
    verdict: Option<&'a str>,
    plot: Option<String>,
    layers: Vec<LayerRow<'a>>,
    sources: Vec<SourceRow>,
    memory: String,
    pictures: Vec<LayerPicture>,
    explanation: &'a Explanation,
    notes: Vec<&'a Note>,
}

struct LayerRow<'a> {
    name: &'a str,
    pattern: &'a str,
    source: &'a str,
    before: String,
    after: String,
    ratio: String,
    passes: String,
}

/// Writes a report as an HTML page that needs no network.
///
/// # Errors
/// Returns an error if the page cannot be written.
pub fn report(findings: &Findings<'_>) -> Result<String, ViewError> {
    let Findings { forms: [before, after], optimized, explanation, target, verdict } = *findings;
    let layers = &explanation.layers;
    let plotted: Vec<(String, [f64; 2])> = layers
        .iter()
        .take(MOST_PLOTTED)
        .map(|of| (name(&of.scope).to_owned(), of.cycles))
        .collect();
    let plot = (!plotted.is_empty()).then(|| plot::bars(&plotted)).transpose()?;
    let headline = explanation.to_string().lines().next().unwrap_or_default().to_owned();
    let page = Page {
        title: &before.name,
        headline,
        worth: ratio_words(&target.name, explanation.ratio_error),
        figures: optimized.report.to_string(),
        verdict,
        plot: plot.map(|svg| pictures::embedded(&svg)),
        layers: layers.iter().map(row).collect(),
        sources: sources::rows(before, target),
        memory: MemoryReport::of_forms([before, after], target).to_string(),
        pictures: pictures::of_layers(before, &optimized.module, explanation, target),
        explanation,
        notes: explanation.notes.iter().collect(),
    };
    page.render().map_err(|error| ViewError::Page(error.to_string()))
}

fn name(scope: &str) -> &str {
    if scope.is_empty() { "outside of all scopes" } else { scope }
}

fn row(layer: &tilewright_tools::explain::Layer) -> LayerRow<'_> {
    let passes = layer.rewrites.iter().map(|(pass, count)| match count {
        1 => (*pass).to_owned(),
        _ => format!("{pass} {count} times"),
    });
    let [before, after] = layer.cycles;
    LayerRow {
        name: name(&layer.scope),
        pattern: &layer.pattern,
        source: layer.source.as_deref().unwrap_or_default(),
        before: cycles(before),
        after: cycles(after),
        ratio: ratio(before, after),
        passes: passes.collect::<Vec<_>>().join(", "),
    }
}

fn ratio(before: f64, after: f64) -> String {
    if after > 0.0 { format!("{:.2}x", before / after) } else { "all gone".to_owned() }
}
