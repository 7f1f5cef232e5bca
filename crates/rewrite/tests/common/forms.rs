//! Targets whose tables of reductions reward one form.

use std::fmt::Write as _;

use tilewright_target::Target;
use tilewright_target::reductions::{Folding, Form, Source, Walk};

/// Returns `cpu` with a table in which a form is the fastest for every reduction along a dim of 17 and more
/// elements; for sums in f32, merged dims and columns along any. [`Form::Wide`] is for innermost axes of fewer
/// than 64, [`Form::Merged`] for several dims side by side.
pub(crate) fn rewarding(form: Form) -> Target {
    let mut cells = String::new();
    let types = ["f32", "f64", "bf16", "s8", "u8", "s32", "u32", "pred"];
    let types = types.iter().chain(if form == Form::InF32 { &["f16"][..] } else { &[] });
    let nested = if form == Form::Merged { &[" nested"][..] } else { &["", " nested"] };
    let innermost = if form == Form::Wide { &[1][..] } else { &[1, 64] };
    let by_length = matches!(form, Form::Folds | Form::Windows | Form::Wide);
    let longest = if by_length { &[17][..] } else { &[1, 17] };
    let lengths: Vec<(&str, i64, i64)> = nested
        .iter()
        .flat_map(|n| innermost.iter().flat_map(move |i| longest.iter().map(move |l| (*n, *i, *l))))
        .collect();
    let walks: Vec<(&str, &str)> = Source::ALL
        .iter()
        .flat_map(|source| Walk::ALL.iter().map(|walk| (source.name(), walk.name())))
        .collect();
    for element_type in types {
        for folding in Folding::ALL {
            for (source, walk) in &walks {
                for (nested, innermost, longest) in &lengths {
                    let _ = writeln!(
                        cells,
                        "{} {element_type} {source} {walk}{nested} {innermost} {longest} | as-is 10 | {} 1",
                        folding.name(),
                        form.name()
                    );
                }
            }
        }
    }
    Target::from_toml(&format!(
        "base = \"cpu\"\n[reductions]\nmeasured = \"nowhere\"\nleast_elements = 1024\n\
         innermost = [1, 64]\nlongest = [1, 17]\ncells = '''\n{cells}'''\n"
    ))
    .expect("a target")
}
