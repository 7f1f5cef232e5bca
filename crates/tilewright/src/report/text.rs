//! Reports as text.

use std::fmt;

use tilewright_rewrite::table::{aligned, count, cycles, shortened};

use super::{AlgebraReport, CostReport, Costs, GuardReport, InstructionCosts, RunReport};
use crate::profile::Profile;

/// A table with a line for each instruction, the most expensive first, then the latency and the
/// total.
impl fmt::Display for CostReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEADER: [&str; 10] = [
            "cycles",
            "vectors",
            "realigned",
            "bytes",
            "padded bytes",
            "flops",
            "instruction",
            "opcode",
            "shape",
            "",
        ];
        let mut dearest: Vec<&InstructionCosts> = self.instructions.iter().collect();
        // Stable: equals stay in the order of the module.
        dearest.sort_by(|a, b| {
            let key = |costs: &Costs| (costs.realigned_vectors, costs.vectors, costs.padded_bytes);
            b.costs.cycles.total_cmp(&a.costs.cycles).then(key(&b.costs).cmp(&key(&a.costs)))
        });
        let mut rows = vec![HEADER.map(str::to_owned)];
        rows.extend(dearest.into_iter().map(|i| {
            i.costs.row([&i.name, i.opcode, &i.shape, i.meaning.as_deref().unwrap_or_default()])
        }));
        let latency = Costs { cycles: self.latency_cycles, ..Costs::default() };
        rows.push(latency.row(["latency", "", "", ""]));
        rows.push(self.total.row(["total", "", "", ""]));
        let Self { module, target, .. } = self;
        let table = aligned(&rows, |column| column < 6);
        write!(f, "{module} on {target}. Costs are a model, not a measurement.\n\n")?;
        f.write_str(table.trim_end())
    }
}

impl Costs {
    fn row(&self, [name, opcode, shape, meaning]: [&str; 4]) -> [String; 10] {
        [
            cycles(self.cycles),
            count(self.vectors),
            count(self.realigned_vectors),
            count(self.bytes),
            count(self.padded_bytes),
            count(self.flops),
            name.to_owned(),
            opcode.to_owned(),
            shortened(shape).into_owned(),
            meaning.to_owned(),
        ]
    }
}

/// A line for each output.
impl fmt::Display for AlgebraReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, verdict) in self.outputs.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n" };
            write!(f, "{gap}out{index}: {verdict}")?;
        }
        Ok(())
    }
}

/// The time, and the counters of the simulated machine if it ran there.
impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = [
            ("bytes read from main memory", self.hbm_read_bytes),
            ("bytes written to main memory", self.hbm_write_bytes),
            ("bytes of workspace", self.workspace_bytes),
            ("bytes of vector memory", self.vmem_peak_bytes),
            ("vectors worked on", self.vector_ops),
            ("vectors realigned", self.realign_ops),
            ("programs", self.programs),
            ("host calls", self.host_calls),
        ];
        let mut rows: Vec<[String; 2]> = Vec::new();
        rows.extend(self.cycles.map(|n| [cycles(n), "cycles".to_owned()]));
        let counters = counters.into_iter();
        rows.extend(counters.filter_map(|(what, n)| Some([count(n?), what.to_owned()])));
        let by_op = self.host_ops.iter().flatten();
        rows.extend(by_op.map(|(op, &n)| [count(n), format!("  {op}")]));
        write!(f, "{}: {:.3} ms", self.backend, self.wall_ms)?;
        for line in aligned(&rows, |column| column < 1).lines() {
            write!(f, "\n{line}")?;
        }
        for refused in &self.refused {
            write!(f, "\ndone in one pass: {}", refused.why)?;
        }
        for GuardReport { name, held, failed } in &self.guards {
            write!(f, "\nguard `{name}`: held {held} times, failed {failed} times")?;
        }
        Ok(())
    }
}

/// A table with a line for each instruction, the slowest first, then the total.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEADER: [&str; 8] =
            ["ms", "share", "count", "bytes", "instruction", "opcode", "shape", ""];
        let mut rows = vec![HEADER.map(str::to_owned)];
        let numbers = |ms: f64, share: f64, counted: u64, bytes: u64| {
            [format!("{ms:.3}"), format!("{:.1}%", 100.0 * share), count(counted), count(bytes)]
        };
        for i in &self.instructions {
            let [ms, share, counted, bytes] = numbers(i.ms, i.share, i.count, i.bytes);
            let shape = shortened(&i.shape).into_owned();
            let meaning = i.meaning.clone().unwrap_or_default();
            let (name, opcode) = (i.name.clone(), i.opcode.to_owned());
            rows.push([ms, share, counted, bytes, name, opcode, shape, meaning]);
        }
        let Self { total_ms, total_bytes, total_count, .. } = self;
        let [ms, share, counted, bytes] = numbers(*total_ms, 1.0, *total_count, *total_bytes);
        let [opcode, shape, meaning] = std::array::from_fn(|_| String::new());
        rows.push([ms, share, counted, bytes, "total".into(), opcode, shape, meaning]);
        f.write_str(aligned(&rows, |column| column < 4).trim_end())
    }
}
