//! Modules of any size to time the crates on, and a clock.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

/// Returns the median time of `rounds` calls of `work`, in seconds, without that of dropping what it returns.
pub fn median_seconds<T>(rounds: usize, mut work: impl FnMut() -> T) -> f64 {
    let time = |_| {
        let start = Instant::now();
        let result = black_box(work());
        let seconds = start.elapsed().as_secs_f64();
        drop(result);
        seconds
    };
    let mut times: Vec<f64> = (0..rounds).map(time).collect();
    times.sort_by(f64::total_cmp);
    times.get(rounds / 2).copied().unwrap_or(f64::NAN)
}

/// Stack frames that metadata refers to.
const FRAMES: usize = 60;
/// Instructions of one block of the network.
const BLOCK: usize = 8;

/// HLO text of about that many instructions, the same every time: what a deep network with norms looks like.
pub fn generated(instructions: usize) -> String {
    let mut out = String::with_capacity(150 * instructions);
    header(&mut out);
    out.push_str(
        "%sum (lhs: f32[], rhs: f32[]) -> f32[] {\n  \
         %lhs = f32[] parameter(0), metadata={op_name=\"reduce_sum\"}\n  \
         %rhs = f32[] parameter(1), metadata={op_name=\"reduce_sum\"}\n  \
         ROOT %sum.1 = f32[] add(%lhs, %rhs), metadata={op_name=\"reduce_sum\"}\n}\n\n\
         ENTRY %main (x: f32[32,128]) -> f32[32,128] {\n  \
         %x = f32[32,128]{1,0} parameter(0)\n  \
         %zero = f32[] constant(0)\n  \
         %out.0 = f32[32,128]{1,0} negate(%x)\n",
    );
    let blocks = instructions.div_ceil(BLOCK).max(1);
    for i in 1..=blocks {
        block(&mut out, i, if i == blocks { "ROOT " } else { "" });
    }
    out.push_str("}\n");
    out
}

fn header(out: &mut String) {
    out.push_str(
        "HloModule jit_step, entry_computation_layout={(f32[32,128]{1,0})->f32[32,128]{1,0}}\n\n\
         FileNames\n1 \"model.py\"\n\nFunctionNames\n1 \"norm\"\n2 \"step\"\n\nFileLocations\n",
    );
    for row in 1..=FRAMES {
        let function = 1 + row % 2;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{row} {{file_name_id=1 function_name_id={function} line={row} end_line={row} column=3 end_column=40}}"
        );
    }
    out.push_str("\nStackFrames\n");
    for row in 1..=FRAMES {
        let _ = writeln!(out, "{row} {{file_location_id={row} parent_frame_id={row}}}");
    }
    out.push_str("\n\n");
}

/// Elementwise ops, a reshape that splits a dim, a reduce, its broadcast.
fn block(out: &mut String, i: usize, root: &str) {
    let mut line = |name: &str, value: &str, at: usize| {
        let layer = i % 100;
        let frame = 1 + (i + at) % FRAMES;
        let _ = writeln!(
            out,
            "  {name} = {value}, metadata={{op_name=\"jit(step)/jit(main)/layer_{layer}/norm/{at}\" stack_frame_id={frame}}}"
        );
    };
    let flat = "f32[32,128]{1,0}";
    let split = "f32[32,8,16]{2,1,0}";
    let before = i - 1;
    line(&format!("%add.{i}"), &format!("{flat} add(%out.{before}, %x)"), 0);
    line(&format!("%mul.{i}"), &format!("{flat} multiply(%add.{i}, %add.{i})"), 1);
    line(&format!("%split.{i}"), &format!("{split} reshape(%mul.{i})"), 2);
    let reduce = format!("reduce(%split.{i}, %zero), dimensions={{2}}, to_apply=%sum");
    line(&format!("%reduce_sum.{i}"), &format!("f32[32,8]{{1,0}} {reduce}"), 3);
    let broadcast = format!("broadcast(%reduce_sum.{i}), dimensions={{0,1}}");
    line(&format!("%broadcast.{i}"), &format!("{split} {broadcast}"), 4);
    line(&format!("%sub.{i}"), &format!("{split} subtract(%split.{i}, %broadcast.{i})"), 5);
    line(&format!("%tanh.{i}"), &format!("{split} tanh(%sub.{i})"), 6);
    line(&format!("{root}%out.{i}"), &format!("{flat} reshape(%tanh.{i})"), 7);
}
