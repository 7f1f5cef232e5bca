//! The promise for norms, tested on the programs as JAX writes them: after the default pipeline no
//! reshape of the image's size is left in the entry computation, and no tensor of that size has
//! other dims than the image. Only `[B,C]`-sized arrays are reshaped.

use crate::common::{
    changes, module, optimized, optimized_by_default, passes, short, without_latency,
};
use tilewright_ir::{Module, Opcode, Verified};
use tilewright_rewrite::{Optimized, Outcome};
use tilewright_testkit::fixture::fixtures;

/// The models whose names begin with one of these.
fn models(prefixes: &[&str]) -> Vec<(String, Verified)> {
    let files = ["models", "real"].into_iter().flat_map(|folder| {
        let files = fixtures(folder).expect("a folder of fixtures").into_iter();
        let wanted = files.filter(|file| prefixes.iter().any(|p| file.name.starts_with(p)));
        wanted.map(move |file| {
            let source = file.text().expect("a readable file");
            (format!("{folder}/{}", file.name), module(&source))
        })
    });
    files.collect()
}

fn is_gradient(name: &str) -> bool {
    name.contains("_grad") || name.contains("_vjp")
}

/// The dims of the image: those of the first parameter.
fn image_dims(module: &Module) -> Vec<i64> {
    let entry = module.entry().expect("an entry");
    let image = module.computation(entry).parameters()[0];
    module.array_shape(image).expect("an array").dims().to_vec()
}

/// Returns the parts of the entry that break the promise: reshapes of the image's size, and tensors
/// of that size in other dims.
fn offenders(module: &Module) -> Vec<String> {
    let image = image_dims(module);
    let size: i64 = image.iter().product();
    let entry = module.entry().expect("an entry");
    let offends = |id| {
        let Some(shape) = module.array_shape(id) else { return false };
        let of_image_size = shape.num_elements() == Some(size);
        of_image_size && (shape.dims() != image || module.opcode(id) == Opcode::Reshape)
    };
    let found = module.instructions(entry).filter(|&id| offends(id));
    found
        .map(|id| {
            format!(
                "{} {} `{}`",
                module.opcode(id),
                module.shape(id).without_layout(),
                module.name_of(id)
            )
        })
        .collect()
}

fn notes(after: &Optimized) -> String {
    after.report.notes.iter().map(|note| format!("{note}\n")).collect()
}

#[test]
fn group_norm_works_on_the_image_as_it_is() {
    let mut failed = Vec::new();
    let models = models(&["group_norm", "instance_norm"]);
    let forward: Vec<_> = models.into_iter().filter(|(name, _)| !is_gradient(name)).collect();
    assert!(forward.len() >= 25, "{} models", forward.len());
    for (name, before) in forward {
        let after = optimized_by_default(&before);
        let offenders = offenders(&after.module);
        if !offenders.is_empty() {
            failed.push(format!("{name}: {offenders:?}\n{}", notes(&after)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Other dims of the image may be left in a gradient only where a use forces them or where they
/// cost less, as for small images whose minor dims fill few lanes. A note must then say so about
/// those dims.
#[test]
fn gradients_too_unless_a_note_says_why_not() {
    let mut failed = Vec::new();
    let models = models(&["group_norm", "instance_norm", "ghost_batch_norm"]);
    let gradients: Vec<_> = models.into_iter().filter(|(name, _)| is_gradient(name)).collect();
    assert!(gradients.len() >= 25, "{} models", gradients.len());
    for (name, before) in gradients {
        let after = optimized_by_default(&before);
        let mut offenders = offenders(&after.module);
        offenders.retain(|offender| !is_explained(offender, &after));
        if !offenders.is_empty() {
            failed.push(format!("{name}: {offenders:?}\n{}", notes(&after)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Checks whether a note explains why an instruction works on its dims, or why those of a reshape's
/// operand stay.
fn is_explained(offender: &str, after: &Optimized) -> bool {
    let dims = offender.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let Some((dims, _)) = dims else { return false };
    after.report.notes.iter().any(|note| {
        let kept = note.text.contains("still reshaped to") || note.outcome == Outcome::Left;
        kept && note.text.contains(&format!("[{dims}]"))
    })
}

#[test]
fn ghost_batch_norm_works_on_the_image_as_it_is() {
    let mut failed = Vec::new();
    let models = models(&["ghost_batch_norm"]);
    let forward = models.iter().filter(|(name, _)| !is_gradient(name)).count();
    assert!(forward >= 4, "{forward} models");
    for (name, before) in models {
        let after = optimized(&before, &without_latency("tpu-like"));
        let offenders = offenders(&after.module);
        if !is_gradient(&name) && !offenders.is_empty() {
            failed.push(format!("{name}: {offenders:?}\n{}", notes(&after)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// If nothing would shrink, the region stays.
#[test]
fn patch_norm_keeps_its_patches() {
    let models: Vec<_> = models(&["patch_norm"])
        .into_iter()
        .filter(|(name, _)| !name.contains("all_channels"))
        .collect();
    assert!(models.len() >= 4, "{} models", models.len());
    for (name, before) in models {
        let alone = passes(&["inline", "dce", "reshape-out-of-region"], "tpu-like", false);
        let alone = optimized(&before, &alone);
        let by_default = optimized_by_default(&before);
        for after in [alone, by_default] {
            let moved =
                after.report.notes.iter().any(|note| {
                    note.pass == "reshape-out-of-region" && note.outcome == Outcome::Done
                });
            assert!(!moved, "{name}: {}", notes(&after));
            if !after.report.unchanged {
                assert_eq!(
                    changes(&after, "reshape-out-of-region"),
                    0,
                    "{name}: {}",
                    short(&after.module)
                );
            }
        }
    }
}
