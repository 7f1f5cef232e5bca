//! `tilewright man`: the manual, a page for each verb.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use clap_mangen::Man as Page;

use crate::args::{Cli, Man};
use crate::io;

pub(crate) fn run(args: Man) -> Result<ExitCode> {
    let mut command = Cli::command().disable_help_subcommand(true);
    if let Some(folder) = args.output {
        let failed = || format!("cannot write the manual into {}", folder.display());
        std::fs::create_dir_all(&folder).with_context(failed)?;
        clap_mangen::generate_to(command, &folder).with_context(failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    // With the options of all verbs in each.
    command.build();
    let page = match &args.verb {
        None => command,
        Some(verb) => match command.find_subcommand(verb) {
            Some(found) => found.clone(),
            None => {
                let message = format!("there is no verb `{verb}`; `tilewright --help` lists them");
                command.error(ErrorKind::InvalidSubcommand, message).exit()
            }
        },
    };
    let mut text = Vec::new();
    Page::new(page).render(&mut text).context("cannot write the page")?;
    io::to_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}
