//! Reports for people: tables and sentences.

use std::borrow::Cow;
use std::fmt::Write as _;

use tilewright::Profile;
use tilewright::ir::Literal;
use tilewright::lowering::{LoweredReduce, PlannedReduce, PlannedStep};
use tilewright::report::{CostReport, Costs, NoteSummary, OptReport, OutputSummary, RunReport};
use tilewright::simulate::Refused;

/// The longest text of a shape that a table shows in full.
const LONGEST_SHAPE: usize = 120;

/// Text cut to a length that fits a line.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_SHAPE) {
        None => text.into(),
        Some((end, _)) => format!("{}...", &text[..end]).into(),
    }
}

/// Rows in columns, each as wide as it needs to be.
pub(crate) fn columns<const N: usize, T: AsRef<str>>(rows: &[[T; N]]) -> String {
    aligned(rows, |_| false)
}

/// The same with some columns flush right, as numbers are.
fn aligned<const N: usize, T: AsRef<str>>(rows: &[[T; N]], right: fn(usize) -> bool) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].as_ref().chars().count()).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let cell = cell.as_ref();
            let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) = if right(column) { (&*blanks, "") } else { ("", &*blanks) };
            line.extend([gap, before, cell, after]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `1 output`, `2 outputs`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A count with its thousands apart: `1_234_567`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Cycles to the next whole one: the model knows them no better.
fn cycles(cycles: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    count(cycles.round() as u64)
}

/// `cost`: a line for each instruction, the dearest first, then the total.
pub(crate) fn costs(report: &CostReport) -> String {
    const HEADER: [&str; 9] = [
        "cycles",
        "vectors",
        "realigned",
        "bytes",
        "padded bytes",
        "flops",
        "instruction",
        "opcode",
        "shape",
    ];
    let row = |costs: &Costs, name: &str, opcode: &str, shape: &str| {
        [
            cycles(costs.cycles),
            count(costs.vectors),
            count(costs.realigned_vectors),
            count(costs.bytes),
            count(costs.padded_bytes),
            count(costs.flops),
            name.to_owned(),
            opcode.to_owned(),
            shortened(shape).into_owned(),
        ]
    };
    let mut dearest: Vec<_> = report.instructions.iter().collect();
    // Stable: equals stay in the order of the module.
    dearest.sort_by(|a, b| {
        let key = |costs: &Costs| (costs.realigned_vectors, costs.vectors, costs.padded_bytes);
        b.costs.cycles.total_cmp(&a.costs.cycles).then(key(&b.costs).cmp(&key(&a.costs)))
    });
    let mut rows = vec![HEADER.map(str::to_owned)];
    rows.extend(dearest.into_iter().map(|i| row(&i.costs, &i.name, i.opcode, &i.shape)));
    let mut latency = row(&Costs::default(), "latency", "", "");
    latency[0] = cycles(report.latency_cycles);
    rows.push(latency);
    rows.push(row(&report.total, "total", "", ""));
    let CostReport { module, target, .. } = report;
    format!("{module} on {target}. Costs are a model, not a measurement.\n\n")
        + &aligned(&rows, |column| column < 6)
}

/// `lower --plan`: every reduce, its axes, and a line for each that is reduced.
pub(crate) fn plans(plans: &[PlannedReduce]) -> String {
    if plans.is_empty() {
        return "no reduce\n".to_owned();
    }
    let texts: Vec<String> = plans.iter().map(plan).collect();
    texts.join("\n")
}

/// `lower`: every kernel, or a line that says why there is none.
pub(crate) fn kernels(kernels: &[LoweredReduce]) -> String {
    if kernels.is_empty() {
        return "no reduce or topk\n".to_owned();
    }
    let text = |lowered: &LoweredReduce| match &lowered.why_not {
        Some(why) => format!("no kernel: {why}\n"),
        None => lowered.kernels.join("\n"),
    };
    let texts: Vec<String> = kernels.iter().map(text).collect();
    texts.join("\n")
}

fn plan(plan: &PlannedReduce) -> String {
    let PlannedReduce { name, shape, axes, normalized, kinds, order, .. } = plan;
    let mut text = format!("{name}: {shape}, axes {axes:?}\n");
    let workspace = plan.workspace_bytes.map_or_else(
        || format!("{} has no kernels for it", plan.strategy),
        |bytes| format!("workspace {bytes}"),
    );
    text += &format!("  {normalized:?} {kinds}, {order}, {workspace}\n");
    for PlannedStep { axis, extent, base, offset, parallel } in &plan.steps {
        text += &format!(
            "  axis {axis}, {extent} entries: base {base}, offset {offset}, parallel {parallel}\n"
        );
    }
    text
}

/// `opt --stats`: costs before and after, and what each pass did.
pub(crate) fn statistics(report: &OptReport, target: &str) -> String {
    let OptReport {
        before,
        after,
        peak_live_bytes,
        memory_sweeps,
        passes,
        stopped,
        unchanged,
        caveat,
        ..
    } = report;
    let mut rows = vec![["", "before", "after", "before / after"].map(str::to_owned)];
    let mut counted = |name: &str, before: u64, after: u64| {
        let quotient = ratio(as_f64(before), as_f64(after));
        rows.push([name.to_owned(), count(before), count(after), quotient]);
    };
    counted("vectors", before.vectors, after.vectors);
    counted("realigned vectors", before.realigned_vectors, after.realigned_vectors);
    counted("bytes", before.bytes, after.bytes);
    counted("padded bytes", before.padded_bytes, after.padded_bytes);
    counted("flops", before.flops, after.flops);
    let [peak_before, peak_after] = *peak_live_bytes;
    counted("peak live bytes", peak_before, peak_after);
    let [read_before, read_after] = memory_sweeps.map(|passes| u64::try_from(passes).unwrap_or(0));
    counted("memory sweeps", read_before, read_after);
    let quotient = ratio(before.cycles, after.cycles);
    rows.push(["cycles".to_owned(), cycles(before.cycles), cycles(after.cycles), quotient]);
    let mut text = format!("on {target}. Costs are a model, not a measurement.\n\n");
    text += &aligned(&rows, |column| column > 0);
    if let Some(caveat) = caveat {
        text += &format!("\nThe ratio of times may be another one: {caveat}.\n");
    }
    if *unchanged {
        text += "\nThe module was left as it is: nothing was found that pays on this target.\n";
        return text;
    }
    let mut rows = vec![["pass", "changes", "ms"].map(str::to_owned)];
    rows.extend(
        passes.iter().map(|p| [p.name.to_owned(), p.changes.to_string(), format!("{:.2}", p.ms)]),
    );
    text.push('\n');
    text += &aligned(&rows, |column| column > 0);
    text += match *stopped {
        "fixpoint" => "\nstopped: no pass finds anything more to do\n",
        "budget" => "\nstopped: the limit on rounds was reached\n",
        _ => "\nstopped: the number of rewrites asked for was made\n",
    };
    text
}

#[expect(clippy::cast_precision_loss, reason = "for a ratio of two digits")]
fn as_f64(n: u64) -> f64 {
    n as f64
}

fn ratio(before: f64, after: f64) -> String {
    if before == after {
        "1.00x".to_owned()
    } else if after == 0.0 {
        "all gone".to_owned()
    } else {
        format!("{:.2}x", before / after)
    }
}

/// `opt --explain`: what was done, then what was left and why.
pub(crate) fn explanation(report: &OptReport) -> String {
    let mut text = String::new();
    let (done, left): (Vec<_>, Vec<_>) =
        report.notes.iter().partition(|note| note.verdict == "rewritten");
    section(&mut text, "Rewritten", &done);
    section(&mut text, "Left as it is", &left);
    if text.is_empty() {
        text += "Nothing was found to rewrite.\n";
    }
    text
}

/// A heading, and notes numbered under it.
fn section(text: &mut String, heading: &str, notes: &[&NoteSummary]) {
    if notes.is_empty() {
        return;
    }
    let _ = writeln!(text, "{heading}:");
    for (i, note) in notes.iter().enumerate() {
        let _ = writeln!(text, "  {}. at {} [{}]", i + 1, note.place, note.pass);
        for line in note.text.lines() {
            let _ = writeln!(text, "     {line}");
        }
    }
}

/// `check`: a line for each output that differs at all, or was not compared as a whole.
/// Differences are in units of the largest magnitude of the output.
pub(crate) fn differences(outputs: &[OutputSummary]) -> String {
    const HEADER: [&str; 5] = ["output", "largest difference", "on", "because", "not compared"];
    let mut rows = vec![HEADER.map(str::to_owned)];
    for output in outputs.iter().filter(|output| output.max_ulp > 0 || output.not_compared > 0) {
        let because = if output.at.is_some() { "it differs" } else { output.excuse.unwrap_or("-") };
        rows.push([
            format!("out{}", output.index),
            largest_difference(output),
            output.largest_on.clone().unwrap_or_else(|| "-".to_owned()),
            because.to_owned(),
            format!("{} of {}", output.not_compared, output.elements),
        ]);
    }
    if rows.len() > 1 { columns(&rows) } else { String::new() }
}

/// In units of the largest magnitude, unless that is zero.
fn largest_difference(output: &OutputSummary) -> String {
    match (output.max_relative, output.max_abs) {
        (Some(relative), _) => format!("{relative:.1e}"),
        (None, Some(difference)) => format!("{difference:.1e} from 0"),
        (None, None) => "not finite".to_owned(),
    }
}

/// `run --stats`: the time, and on a simulated machine what was counted.
pub(crate) fn run(report: &RunReport) -> String {
    let mut text = format!("{}: {:.3} ms\n", report.backend, report.wall_ms);
    let counted = [
        ("bytes read from main memory", report.hbm_read_bytes),
        ("bytes written to main memory", report.hbm_write_bytes),
        ("bytes of workspace", report.workspace_bytes),
        ("bytes of vector memory", report.vmem_peak_bytes),
        ("vectors worked on", report.vector_ops),
        ("vectors realigned", report.realign_ops),
        ("host calls", report.host_calls),
    ];
    let mut rows: Vec<[String; 2]> = Vec::new();
    rows.extend(report.cycles.map(|n| [cycles(n), "cycles".to_owned()]));
    let counted = counted.into_iter();
    rows.extend(counted.filter_map(|(what, n)| Some([count(n?), what.to_owned()])));
    let by_op = report.host_ops.iter().flatten();
    rows.extend(by_op.map(|(op, &n)| [count(n), format!("  {op}")]));
    if !rows.is_empty() {
        text += &aligned(&rows, |column| column < 1);
    }
    for Refused { why, .. } in &report.refused {
        text += &format!("done in one pass: {why}\n");
    }
    text
}

/// `run --profile`: a line for each instruction, the slowest first, then the
/// total.
pub(crate) fn profile(profile: &Profile) -> String {
    const HEADER: [&str; 7] = ["ms", "share", "count", "bytes", "instruction", "opcode", "shape"];
    let mut rows = vec![HEADER.map(str::to_owned)];
    let row = |ms: f64, share: f64, counted: u64, bytes: u64| {
        [format!("{ms:.3}"), format!("{:.1}%", 100.0 * share), count(counted), count(bytes)]
    };
    for i in &profile.instructions {
        let [ms, share, counted, bytes] = row(i.ms, i.share, i.count, i.bytes);
        let shape = shortened(&i.shape).into_owned();
        rows.push([ms, share, counted, bytes, i.name.clone(), i.opcode.to_owned(), shape]);
    }
    let Profile { total_ms, total_bytes, total_count, .. } = profile;
    let [ms, share, counted, bytes] = row(*total_ms, 1.0, *total_count, *total_bytes);
    rows.push([ms, share, counted, bytes, "total".into(), String::new(), String::new()]);
    aligned(&rows, |column| column < 4)
}

/// `run`: each output with its first elements.
pub(crate) fn outputs<'a>(prefix: &str, results: impl IntoIterator<Item = &'a Literal>) -> String {
    let mut text = String::new();
    let leaves = results.into_iter().flat_map(Literal::leaves);
    let leaves = leaves.filter(|leaf| !matches!(leaf, Literal::Token));
    for (i, leaf) in leaves.enumerate() {
        let elements = tilewright::elements(leaf, SHOWN);
        let more = leaf.as_array().is_some_and(|array| array.len() > SHOWN);
        let dots = if more { ", ..." } else { "" };
        let _ = writeln!(text, "{prefix}{i} {} = {{{}{dots}}}", leaf.shape(), elements.join(", "));
    }
    text
}

/// How many elements of an output are shown.
const SHOWN: usize = 16;
