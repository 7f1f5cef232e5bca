//! Targets whose tables of reductions reward one form.

use std::fmt::Write as _;

use tilewright_target::Target;
use tilewright_target::reductions::{Folding, Form, Source, Walk};

/// Returns `cpu` with a table in which a form is the fastest for every reduction along a dim of 17 and more
/// elements; for sums in f32, merged dims and columns along any. [`Form::Wide`] is for innermost axes of fewer
/// than 64, [`Form::Merged`] for several dims side by side, [`Form::Copied`] for all shared values.
pub(crate) fn rewarding(form: Form) -> Target {
    if form == Form::Copied {
        return copying(Source::ALL);
    }
    let types = ["f32", "f64", "bf16", "s8", "u8", "s32", "u32", "pred"];
    let has_f16 = matches!(form, Form::InF32 | Form::Kernel);
    let types = types.iter().chain(if has_f16 { &["f16"][..] } else { &[] });
    let flags = if form == Form::Merged { &[" nested"][..] } else { &["", " nested"] };
    let innermost = if form == Form::Wide { &[1][..] } else { &[1, 64] };
    let by_length = matches!(form, Form::Folds | Form::Windows | Form::Wide);
    let longest = if by_length { &[17][..] } else { &[1, 17] };
    let mut cells = String::new();
    for element_type in types {
        for folding in Folding::ALL {
            for source in ["stored", "computed"] {
                let kind = format!("{} {element_type} {source}", folding.name());
                add(&mut cells, &kind, flags, [innermost, longest], form);
            }
        }
    }
    table(&cells)
}

/// Returns `cpu` with a table in which reductions of shared values of these kinds are faster with copies.
pub(crate) fn copying(kinds: &[Source]) -> Target {
    let mut cells = String::new();
    for source in kinds.iter().filter(|source| source.is_shared()) {
        for folding in ["sum", "extremum", "product"] {
            let kind = format!("{folding} f32 {}", source.name());
            let flags = [" large", " large several"];
            add(&mut cells, &kind, &flags, [&[1, 64], &[1]], Form::Copied);
        }
    }
    table(&cells)
}

/// Adds the cells of a kind for all walks, flags and lengths.
fn add(cells: &mut String, kind: &str, flags: &[&str], lengths: [&[i64]; 2], form: Form) {
    let is_shared = form == Form::Copied;
    let walks = if is_shared { &[Walk::Rows, Walk::Columns] } else { Walk::ALL };
    for walk in walks {
        for flags in flags {
            for innermost in lengths[0] {
                for longest in lengths[1] {
                    let (walk, form) = (walk.name(), form.name());
                    let cell = format!("{kind} {walk}{flags} {innermost} {longest}");
                    let _ = writeln!(cells, "{cell} | as-is 10 | {form} 1");
                }
            }
        }
    }
}

fn table(cells: &str) -> Target {
    Target::from_toml(&format!(
        "base = \"cpu\"\n[reductions]\nmeasured = \"nowhere\"\nleast_elements = 1024\n\
         large_elements = 1\ninnermost = [1, 64]\nlongest = [1, 17]\ncells = '''\n{cells}'''\n"
    ))
    .expect("a target")
}
