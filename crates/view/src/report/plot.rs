//! Plots.

use std::error::Error;

use plotters::prelude::*;
use tilewright::report::cycles;

use crate::error::ViewError;

const WIDTH: u32 = 1000;
const ROW: u32 = 40;
/// The space around the plot, and that of the axis below it.
const MARGIN: u32 = 10;
const AXIS: u32 = 40;
/// The width of a character of a label, and the space around labels.
const CHARACTER: u32 = 7;
const LABEL_MARGIN: u32 = 16;
const BEFORE: RGBColor = RGBColor(150, 158, 168);
const AFTER: RGBColor = RGBColor(20, 110, 190);
/// The most characters of a label.
const MOST_CHARACTERS: usize = 46;

/// Draws two bars for each name: the modelled cycles before and after.
///
/// # Errors
/// Returns an error if the plot cannot be drawn.
pub(super) fn bars(rows: &[(String, [f64; 2])]) -> Result<String, ViewError> {
    let mut svg = String::new();
    draw(&mut svg, rows).map_err(|error| ViewError::Page(error.to_string()))?;
    Ok(svg)
}

fn draw(svg: &mut String, rows: &[(String, [f64; 2])]) -> Result<(), Box<dyn Error>> {
    let count = rows.len();
    // The axis has a place above the last row, too.
    let places = u32::try_from(count)?.saturating_add(1);
    let height = places.saturating_mul(ROW).saturating_add(2 * MARGIN + AXIS);
    let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let characters = rows.iter().map(|(name, _)| shortened(name).chars().count()).max();
    let label_width = u32::try_from(characters.unwrap_or(0))?.saturating_mul(CHARACTER);
    let most = rows.iter().flat_map(|(_, cycles)| *cycles).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&root)
        .margin(MARGIN)
        .margin_right(4 * MARGIN)
        .x_label_area_size(AXIS)
        .y_label_area_size(label_width.saturating_add(LABEL_MARGIN))
        .build_cartesian_2d(0.0..most * 1.02, (0..count).into_segmented())?;
    // The first row is at the top.
    let row = |place: usize| count.checked_sub(place + 1).and_then(|row| rows.get(row));
    let label = |place: &SegmentValue<usize>| match place {
        SegmentValue::CenterOf(place) => {
            // Without marks, this is the space between a label and the axis.
            row(*place).map(|(name, _)| shortened(name) + "\u{a0}\u{a0}").unwrap_or_default()
        }
        SegmentValue::Exact(_) | SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        // Marks would stand between rows, too.
        .set_tick_mark_size(LabelAreaPosition::Left, 0)
        .x_labels(5)
        .y_labels(count)
        .x_desc("modelled cycles: before (grey) and after (blue)")
        .x_label_formatter(&|value| cycles(*value))
        .y_label_formatter(&label)
        .draw()?;
    for (when, colour, [top, bottom]) in [(0, BEFORE, [4, 20]), (1, AFTER, [20, 4])] {
        let bars = (0..count).filter_map(|place| Some((place, row(place)?.1.get(when)?)));
        chart.draw_series(bars.map(|(place, &value)| {
            let from = (0.0, SegmentValue::Exact(place));
            let mut bar =
                Rectangle::new([from, (value, SegmentValue::Exact(place + 1))], colour.filled());
            bar.set_margin(top, bottom, 0, 0);
            bar
        }))?;
    }
    root.present()?;
    Ok(())
}

/// Returns the end of a long name.
fn shortened(name: &str) -> String {
    match name.char_indices().rev().nth(MOST_CHARACTERS) {
        Some((start, _)) => format!("...{}", name.get(start..).unwrap_or_default()),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::bars;

    /// The heights of the bars before and after, in pixels.
    fn heights(layers: usize) -> Vec<i32> {
        let rows: Vec<_> =
            (0..layers).map(|row| (format!("layer {row}"), [1000.0, 400.0])).collect();
        let svg = bars(&rows).expect("a plot");
        let is_bar = |line: &&str| ["#969EA8", "#146EBE"].iter().any(|fill| line.contains(fill));
        let height = |line: &str| line.split("height=\"").nth(1)?.split('"').next()?.parse().ok();
        svg.lines().filter(is_bar).filter_map(height).collect()
    }

    #[test]
    fn bars_are_as_high_for_one_layer_as_for_many() {
        for layers in [1, 2, 12] {
            let heights = heights(layers);
            assert_eq!(heights.len(), 2 * layers, "{layers} layers");
            assert!(
                heights.iter().all(|height| (12..=20).contains(height)),
                "{layers}: {heights:?}"
            );
        }
    }
}
