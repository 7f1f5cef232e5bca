//! The difference as text and as a page.

use tilewright_tools::diff::{DiffOptions, DiffReport};

use super::*;

fn report() -> (Loaded, Loaded, DiffReport) {
    let a = load(
        "HloModule m\n\nENTRY main {\n  x = f32[2,3] parameter(0)\n  y = f32[2,3] parameter(1)
  p = f32[2,3] exponential(x)\n  q = f32[2,3] exponential(x)\n  d = f32[2,3] subtract(p, y)
  ROOT t = (f32[2,3], f32[2,3]) tuple(d, q)\n}\n",
    );
    let b = load("HloModule m, replica_count=2\n\nENTRY main {\n  x = f32[2,3] parameter(0)\n  y = f32[2,3] parameter(1)
  p = f32[2,3] exponential(x)\n  n = f32[2,3] negate(p)\n  d = f32[2,3] subtract(y, n)
  ROOT t = (f32[2,3], f32[2,3]) tuple(d, p)\n}\n");
    let report = DiffReport::new(&a, &b, &DiffOptions::default());
    (a, b, report)
}

#[test]
fn text() {
    let (a, b, report) = report();
    insta::assert_snapshot!(report.text(&a, &b, 100, false));
    let short = report.text(&a, &b, 1, false);
    assert!(short.contains("... and 3 more differences"), "{short}");
    assert!(report.text(&a, &b, 100, true).contains('\u{1b}'));
    let same = DiffReport::new(&a, &a, &DiffOptions::default());
    assert_eq!(same.text(&a, &a, 100, false), "same: 6 instructions in both\n");
}

/// What only moves elements is said in words.
#[test]
fn moves_in_words() {
    let a = entry("  x = f32[2,3] parameter(0)\n  ROOT y = f32[2,3] negate(x)");
    let b = entry(
        "  x = f32[2,3] parameter(0)\n  y = f32[2,3] negate(x)
  ROOT z = f32[3,2] transpose(y), dimensions={1,0}",
    );
    let text = DiffReport::new(&a, &b, &DiffOptions::default()).text(&a, &b, 100, false);
    assert!(text.contains("dimensions={1,0}  // swaps dims 0 and 1, line "), "{text}");
}

/// A module that does not come from text is drawn as it is printed.
#[test]
fn without_text() {
    let (a, b, _) = report();
    let read = |of: &Loaded| {
        tilewright::load_bytes("m.pb", tilewright::encode(&of.module).unwrap()).unwrap()
    };
    let (a, b) = (read(&a), read(&b));
    let report = DiffReport::new(&a, &b, &DiffOptions::default());
    insta::assert_snapshot!(report.text(&a, &b, 100, false));
}

#[test]
fn page() {
    let (_, _, report) = report();
    let page = report.html(100);
    assert!(page.contains("<mark>%p</mark>, %y)") && page.contains("light-dark("), "{page}");
    assert!(!page.contains("http"), "the page refers to nothing");
    assert!(report.html(1).contains("3 more differences"));
    // What stands in a module is text on the page.
    let a = entry("  ROOT x = f32[2] parameter(0), frontend_attributes={a=\"<b>\"}");
    let b = entry("  ROOT x = f32[2] parameter(0), frontend_attributes={a=\"<i>\"}");
    let page = DiffReport::new(&a, &b, &DiffOptions::default()).html(100);
    assert!(page.contains("&#60;b&#62;") && !page.contains("<b>"), "{page}");
}

/// Elements that are taken of one tuple in a row are one line, and one difference.
#[test]
fn elements_of_a_tuple() {
    let a = load(
        "HloModule m\n\nENTRY main {\n  t = (f32[], f32[], f32[]) parameter(0)\n  ROOT c = (f32[], f32[], f32[]) copy(t)\n}\n",
    );
    let b = load(
        "HloModule m\n\nENTRY main {\n  t = (f32[], f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(t), index=0\n  y = f32[] get-tuple-element(t), index=1
  z = f32[] get-tuple-element(t), index=2\n  ROOT c = (f32[], f32[], f32[]) tuple(x, y, z)\n}\n",
    );
    let report = DiffReport::new(&a, &b, &DiffOptions::default());
    let text = report.text(&a, &b, 100, false);
    assert!(text.contains("+ 3 elements of %t  // lines 5 to 7\n"), "{text}");
    assert!(!text.contains("get-tuple-element"), "{text}");
    assert_eq!(report.computations[0].added.len(), 4);
    // Both roots have the name `c`.
    assert!(text.contains("root: c -> another c"), "{text}");
}
