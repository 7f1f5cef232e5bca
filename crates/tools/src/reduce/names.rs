//! Gives short names to all instructions, to computations and to the module.

use tilewright::ir::Module;

use super::draft::{Draft, Renamed};
use super::search::{Ended, Search};

pub(super) fn run(search: &mut Search<'_>) -> Result<(), Ended> {
    let all = Renamed { module: true, computations: true, instructions: true };
    let none = Renamed::default();
    // If a predicate looks for names of one kind, the others still become short.
    let choices = [
        vec![all],
        vec![Renamed { instructions: true, ..none }],
        vec![Renamed { computations: true, ..none }],
        vec![Renamed { module: true, ..none }],
    ];
    for choice in &choices {
        let make = |module: &Module, number: usize| {
            Draft { renamed: *choice.get(number)?, ..Draft::default() }.write(module)
        };
        search.first("names", choice.len(), &make)?;
    }
    Ok(())
}
