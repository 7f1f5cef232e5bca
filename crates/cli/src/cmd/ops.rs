//! `tilewright ops`: the ops of HLO, as the table of ops has them.

use std::process::ExitCode;

use anyhow::Result;
use tilewright::listing::{OpEntry, OpList};

use crate::args::Listing;
use crate::{io, report};

pub(crate) fn run(args: Listing) -> Result<ExitCode> {
    let list = OpList::new();
    let text = if args.json {
        io::json(&list)?
    } else {
        report::columns(&list.ops.iter().map(row).collect::<Vec<_>>())
    };
    io::to_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn row(op: &OpEntry) -> [String; 4] {
    let operands = match (op.min_operands, op.max_operands) {
        (min, Some(max)) if min == max => min.to_string(),
        (min, Some(max)) => format!("{min} to {max}"),
        (min, None) => format!("{min} or more"),
    };
    [op.name.into(), op.family.into(), operands, op.attributes.join(", ")]
}
