//! Compares moving parts of regions with moving all or nothing, on the models.

use tilewright_ir::Module;
use tilewright_target::Target;
use tilewright_testkit::fixture::fixtures;

use crate::Options;
use crate::cost::{Memo, module_cost, pays};
use crate::driver::Context;
use crate::driver::pipeline;
use crate::driver::registry;
use crate::reshape_motion::region_move::{Search, move_regions};
use crate::reshape_motion::{reshape_out_of_region, unit_dims};

/// The default pipeline, with or without cuts.
struct Pipeline<'a> {
    target: &'a Target,
    cuts: bool,
}

impl Pipeline<'_> {
    /// Runs passes once each; returns the number of changes.
    fn run(&self, passes: &[&'static str], module: &mut Module) -> usize {
        let options = Options::new(self.target.clone());
        let mut changes = 0;
        for &pass in passes {
            let memo = Memo::default();
            let mut cx = Context::new(&options, &memo);
            let searches = [unit_dims::SEARCH, reshape_out_of_region::SEARCH];
            let done = match searches.into_iter().find(|search| search.pass == pass) {
                Some(search) if !self.cuts => {
                    move_regions(module, &mut cx, Search { cuts: false, ..search })
                }
                _ => registry::pass(pass).expect("a pass").run(module, &mut cx),
            };
            changes += done.expect("edits that can be made");
        }
        changes
    }

    /// Returns the modelled cycles of a module after the pipeline.
    fn cost(&self, module: &Module) -> f64 {
        let pipeline = pipeline("default").expect("a pipeline");
        let mut module = module.clone();
        let mut best: Option<(Module, f64)> = None;
        let mut turn = 0;
        self.run(pipeline.first, &mut module);
        loop {
            while self.run(pipeline.cleanup, &mut module) > 0 {}
            let now = module_cost(&module, self.target).cycles;
            let ((kept, cycles), first) = match best {
                Some(best) if !pays(best.1, now) => (best, turn + 1),
                _ => ((module, now), 0),
            };
            module = kept.clone();
            best = Some((kept, cycles));
            let mut groups = pipeline.cost_gated.iter().enumerate().skip(first);
            match groups.find(|(_, group)| self.run(group, &mut module) > 0) {
                Some((place, _)) => turn = place,
                None => return cycles,
            }
        }
    }
}

#[test]
fn cuts_beside_all_or_nothing_on_the_models() {
    let target = Target::builtin(Target::DEFAULT).expect("the default");
    let (mut models, mut better, mut worse) = (0, 0, 0);
    for folder in ["models", "real"] {
        for file in fixtures(folder).expect("a folder of fixtures") {
            let text = file.text().expect("a readable file");
            let module = tilewright_text::parse_and_verify(&text).expect("a module");
            let cost = |cuts| Pipeline { target: &target, cuts }.cost(&module);
            let (greedy, cut) = (cost(false), cost(true));
            models += 1;
            better += usize::from(pays(greedy, cut));
            worse += usize::from(pays(cut, greedy));
            if pays(greedy, cut) || pays(cut, greedy) {
                let (name, less) = (file.name, 100.0 * (1.0 - cut / greedy));
                println!(
                    "{folder}/{name}: all or nothing {greedy:.0}, parts {cut:.0}, {less:.1} % less"
                );
            }
        }
    }
    println!("of {models} models parts are better on {better}, worse on {worse}");
    assert!(better > 0 && worse == 0, "better on {better}, worse on {worse}");
}
