//! Prints what reductions take on the simulated machine, by every strategy, as a
//! table in Markdown.
//!
//! ```text
//! cargo run --release --example reduction_strategies > docs/reduction-strategies.md
//! ```

use std::io::{self, Write as _};

use tilewright::lower::Strategy;
use tilewright::prelude::*;
use tilewright::sim::Counters;
use tilewright::simulate;
use tilewright::targets::Target;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A reduction: its array, its operation, its dims and its results.
struct Case {
    what: &'static str,
    by: By,
    element_type: &'static str,
    dims: &'static str,
    axes: &'static str,
    kept: &'static str,
}

/// By what is reduced.
#[derive(Clone, Copy)]
enum By {
    Sum,
    Max,
    Argmax,
}

const fn case(
    what: &'static str,
    by: By,
    element_type: &'static str,
    [dims, axes, kept]: [&'static str; 3],
) -> Case {
    Case { what, by, element_type, dims, axes, kept }
}

const CASES: &[Case] = &[
    case("five dims", By::Sum, "f32", ["2,3,2,3,6", "1,3", "2,2,6"]),
    case("five dims", By::Sum, "f32", ["3,6,2,3,4", "1,2,3", "3,4"]),
    case("five dims, larger", By::Sum, "f32", ["16,20,16,24,60", "1,3", "16,16,60"]),
    case("five dims, larger", By::Max, "f32", ["16,20,16,24,60", "1,3", "16,16,60"]),
    case("five dims, larger", By::Sum, "bf16", ["16,20,16,24,60", "1,3", "16,16,60"]),
    case("five dims, lanes full", By::Sum, "f32", ["16,12,16,24,128", "1,3", "16,16,128"]),
    case("five dims, lanes full", By::Argmax, "f32", ["16,12,16,24,128", "1,3", "16,16,128"]),
    case("short axes", By::Sum, "f32", ["64,3,64,3,128", "1,3", "64,64,128"]),
    case("weight norm", By::Sum, "f32", ["8,5,3,3", "0,2,3", "5"]),
    case("weight norm", By::Sum, "f32", ["64,320,3,3", "0,2,3", "320"]),
    case("group norm", By::Sum, "f32", ["4,64,64,320", "1,2", "4,320"]),
    case("group norm, in groups", By::Sum, "f32", ["4,64,64,32,10", "1,2,4", "4,32"]),
    case("instance norm", By::Sum, "f32", ["8,56,56,128", "1,2", "8,128"]),
    case("layer norm", By::Sum, "f32", ["512,1024", "1", "512"]),
    case("layer norm", By::Argmax, "f32", ["512,1024", "1", "512"]),
    case("batch norm", By::Sum, "f32", ["16,32,32,128", "0,1,2", "128"]),
    case("batch norm", By::Sum, "bf16", ["16,32,32,128", "0,1,2", "128"]),
    case("batches and lanes", By::Sum, "f32", ["16,32,32,128", "0,3", "32,32"]),
    case("batches and columns", By::Sum, "f32", ["64,32,32,128", "0,2", "32,128"]),
    case("batches and columns", By::Max, "bf16", ["64,32,32,128", "0,2", "32,128"]),
    case("narrow", By::Sum, "f32", ["4096,3", "0", "3"]),
    case("odd", By::Sum, "f32", ["7,13,33,5", "1,3", "7,33"]),
];

/// Bytes of vector memory: more than any of the larger inputs is beyond it, and enough
/// for blocks that keep main memory busy.
const VECTOR_MEMORY: u64 = 4 << 20;

fn main() -> Result<()> {
    let mut target = tilewright::target("tpu-like")?;
    target.vector_memory_bytes = VECTOR_MEMORY;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", HEAD.trim_start())?;
    let mut header = vec!["reduce".to_owned(), "bound".into(), "fused / bound".into()];
    for strategy in Strategy::ALL {
        let columns = ["cycles", "bytes moved", "workspace", "realigned"];
        header.extend(columns.map(|column| format!("{strategy}: {column}")));
    }
    row(&mut out, &header)?;
    row(&mut out, &header.iter().map(|_| "---".to_owned()).collect::<Vec<_>>())?;
    for case in CASES {
        row(&mut out, &measured(case, &target)?)?;
    }
    Ok(())
}

const HEAD: &str = "
# Reductions by every strategy

```console
$ cargo run --release --example reduction_strategies > docs/reduction-strategies.md
```

Cycles of the simulated machine `tpu-like` ([targets](targets.md)), with 4 MiB of vector memory in
place of 124 MiB, so that the larger inputs are past it. *Bound* is the bytes of the input as it lies
on the target, with all padding, over the bytes that main memory sends in a cycle: nothing that reads
its input takes less. *Bytes moved* are those read from main memory and written to it; *workspace*
is what lies there between kernels; *realigned* are vectors of which elements were moved to other
places. `transposed` has blocks that are runs of what it writes, so that with this little vector memory
it reads some inputs several times. What the strategies are, [kernels](kernels.md) tells. Like all costs
here these are a model's.
";

fn row(out: &mut impl io::Write, cells: &[String]) -> io::Result<()> {
    writeln!(out, "| {} |", cells.join(" | "))
}

/// Returns the cells of a case.
fn measured(case: &Case, target: &Target) -> Result<Vec<String>> {
    let module = tilewright::parse(&case.text())?;
    let entry = module.entry().ok_or("there is no entry")?;
    let parameters = module.computation(entry).parameters();
    let arrays = parameters.iter().filter_map(|&parameter| module.array_shape(parameter));
    let bytes: u64 = arrays.map(|shape| target.footprint(shape).padded_bytes).sum();
    let bound = number(bytes) / target.hbm_bytes_per_cycle;
    let mut cells = vec![case.title(), format!("{bound:.0}"), String::new()];
    // All strategies begin with it.
    let mut fused = None;
    for strategy in Strategy::ALL {
        let Some(counters) = taken(&module, target, strategy)? else {
            cells.extend(["-"; 4].map(str::to_owned));
            continue;
        };
        let Counters { cycles, hbm_read_bytes, hbm_write_bytes, .. } = counters;
        let fused = *fused.get_or_insert(cycles);
        if strategy == Strategy::Fused {
            cells[2] = format!("{:.2}", cycles / bound);
        }
        cells.push(match strategy {
            Strategy::Fused => format!("{cycles:.0}"),
            _ => format!("{cycles:.0} ({:.2}x)", cycles / fused),
        });
        let moved = hbm_read_bytes + hbm_write_bytes;
        let counted = [moved, counters.workspace_bytes, counters.realign_ops];
        cells.extend(counted.map(|n| n.to_string()));
    }
    Ok(cells)
}

/// Returns the counters of the reduce at a module's root; `None` if the strategy has no kernels
/// for it.
fn taken(module: &Verified, target: &Target, strategy: Strategy) -> Result<Option<Counters>> {
    let entry = module.entry().ok_or("there is no entry")?;
    let root = module.computation(entry).root().ok_or("there is no root")?;
    let Ok(lowered) = tilewright::lower::lowered(module, root, target, strategy) else {
        return Ok(None);
    };
    let inputs = tilewright::random_inputs(module, 0)?;
    let parameters = module.computation(entry).parameters();
    let operand = |place: usize| {
        let &operand = module.operands(root).get(place)?;
        let value = match parameters.iter().position(|&parameter| parameter == operand) {
            Some(number) => inputs.get(number),
            None => module.constant(operand),
        };
        tilewright::sim::memory_of(target, module.array_shape(operand)?, value?)
    };
    let arithmetic = &simulate::InterpreterArithmetic;
    Ok(Some(tilewright::sim::run_stages(target, arithmetic, &lowered, &operand)?.counters))
}

#[expect(clippy::cast_precision_loss, reason = "for a ratio of some digits")]
fn number(n: u64) -> f64 {
    n as f64
}

impl Case {
    fn title(&self) -> String {
        let Self { what, element_type, dims, axes, .. } = self;
        let op = match self.by {
            By::Sum => "sum",
            By::Max => "max",
            By::Argmax => "argmax",
        };
        format!("{what}: {op} of `{element_type}[{dims}]` along {axes}")
    }

    /// Returns the module.
    fn text(&self) -> String {
        let Self { element_type: t, dims, axes, kept, .. } = self;
        let (opcode, init) = match self.by {
            By::Sum => ("add", "0"),
            By::Max => ("maximum", "-inf"),
            By::Argmax => return self.argmax(),
        };
        format!(
            "HloModule m
f {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {opcode}(a, b) }}
ENTRY e {{
  x = {t}[{dims}] parameter(0)
  init = {t}[] constant({init})
  ROOT r = {t}[{kept}] reduce(x, init), dimensions={{{axes}}}, to_apply=f
}}"
        )
    }

    /// Returns the greatest element with its index along the last axis.
    fn argmax(&self) -> String {
        let Self { element_type: t, dims, axes, kept, .. } = self;
        let along = axes.rsplit(',').next().unwrap_or(axes);
        format!(
            "HloModule m
f {{
  a = {t}[] parameter(0) i = s32[] parameter(1) b = {t}[] parameter(2) j = s32[] parameter(3)
  greater = pred[] compare(a, b), direction=GT
  nan = pred[] compare(a, a), direction=NE
  wins = pred[] or(greater, nan)
  equal = pred[] compare(a, b), direction=EQ
  first = pred[] compare(i, j), direction=LT
  tie = pred[] and(equal, first)
  keep = pred[] or(wins, tie)
  value = {t}[] select(wins, a, b)
  index = s32[] select(keep, i, j)
  ROOT both = ({t}[], s32[]) tuple(value, index)
}}
ENTRY e {{
  x = {t}[{dims}] parameter(0)
  at = s32[{dims}] iota(), iota_dimension={along}
  none = {t}[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = ({t}[{kept}], s32[{kept}]) reduce(x, at, none, zero), dimensions={{{axes}}}, to_apply=f
}}"
        )
    }
}
