//! `tilewright passes`: the passes, and the pipelines made of them.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::PassList;

use crate::args::Listing;
use crate::{io, report};

pub(crate) fn run(args: Listing) -> Result<ExitCode> {
    let list = PassList::new();
    let text = if args.json { io::json(&list)? } else { as_text(&list) };
    io::to_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(list: &PassList) -> String {
    let rows: Vec<_> =
        list.passes.iter().map(|pass| [pass.name, pass.class, pass.summary]).collect();
    let mut text = report::columns(&rows);
    for pipeline in &list.pipelines {
        text.push_str(&format!("\npipeline `{}`: {}\n", pipeline.name, pipeline.summary));
        let stages = [
            ["  first, once:", &pipeline.first.join(", ")],
            ["  cost-gated:", &pipeline.cost_gated.join(", ")],
            ["  to tidy up:", &pipeline.cleanup.join(", ")],
        ];
        let stages: Vec<_> = stages.into_iter().filter(|stage| !stage[1].is_empty()).collect();
        text.push_str(&report::columns(&stages));
    }
    text
}
