//! `tilewright lower`: reductions and selections as kernels, or as plans.

use std::fmt::Display;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use tilewright::lowering;

use crate::args::Lower;
use crate::{io, progress};

pub(crate) fn run(args: Lower) -> Result<ExitCode> {
    let Lower { input, target, strategy, plan, output, json } = args;
    let target = tilewright::target(&target)?;
    let module = io::load(&input.path)?.module;
    let text = progress::stage("lower", || {
        if plan {
            texts(&lowering::plans(&module, &target, strategy)?, json, "no reduce")
        } else {
            texts(&lowering::module_kernels(&module, &target, strategy)?, json, "no reduce or topk")
        }
    });
    output.sink().write(text?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Reports with empty lines between them, or as JSON.
fn texts<T: Display + Serialize>(all: &[T], json: bool, none: &str) -> Result<String> {
    if json {
        return io::json(all);
    }
    if all.is_empty() {
        return Ok(format!("{none}\n"));
    }
    let texts: Vec<String> = all.iter().map(|one| format!("{one}\n")).collect();
    Ok(texts.join("\n"))
}
