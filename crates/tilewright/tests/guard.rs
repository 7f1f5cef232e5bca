//! Optimising with a check after.

use tilewright::{CheckOptions, Guarded, Options, Remedy, Target, Verified, check};
use tilewright_testkit::fixture::fixtures;

fn model(name: &str) -> Verified {
    let all = fixtures("models").unwrap();
    let model = all.into_iter().find(|model| model.name == name).unwrap();
    tilewright::parse(&model.text().unwrap()).unwrap()
}

fn guarded(module: &Verified, how: &CheckOptions<'_>) -> Guarded {
    let options = Options::new(Target::builtin("tpu-like").unwrap());
    tilewright::optimize_guarded(module, &options, how).unwrap()
}

#[test]
fn what_agrees_is_kept() {
    let module = model("group_norm_nhwc_grad");
    let Guarded { optimized, agreement, blamed } = guarded(&module, &CheckOptions::default());
    assert!(blamed.is_empty(), "{blamed:?}");
    assert!(!optimized.report.unchanged);
    assert!(agreement.equal());
    assert!(!agreement.algebra.is_empty(), "algebra is asked first");
}

/// Sums in another order are no fault, but to a check of every bit they are: the rewrites
/// are found and left out one after the other, until every bit is the same.
#[test]
fn rewrites_that_change_results_are_left_out() {
    let module = model("group_norm_nhwc_grad");
    let exact = CheckOptions::default().with_exact(true).with_seeds(1);
    let Guarded { optimized, blamed, .. } = guarded(&module, &exact);
    let remedies: Vec<Remedy> = blamed.iter().map(|blame| blame.left_out).collect();
    assert_eq!(remedies.first(), Some(&Remedy::Rewrite), "{blamed:?}");
    assert!(remedies.is_sorted_by_key(|&remedy| remedy == Remedy::Everything), "{remedies:?}");
    let note = blamed[0].note.as_ref().unwrap();
    let message = blamed[0].to_string();
    assert!(
        message.contains(&note.place.text) && message.contains("so it was left out"),
        "{message}"
    );
    assert!(check(&module, &optimized.module, &exact).unwrap().equal());
}
