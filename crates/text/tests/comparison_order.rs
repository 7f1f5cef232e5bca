//! `order=` of comparisons, which jaxlib 0.12 prints in place of `type=`, and
//! `is_stable=` of `topk`.

use tilewright_text::{PrintOptions, parse, print};

/// Returns a comparison of elements of a type, with attributes.
fn comparison(element: &str, attributes: &str) -> String {
    format!(
        "HloModule m\n\nENTRY %e (x: {element}[2]) -> pred[2] {{\n  %x = {element}[2] parameter(0)\n  \
         ROOT %r = pred[2] compare(%x, %x), direction=LT{attributes}\n}}\n"
    )
}

/// Returns the printed form of a text, or the first error.
fn printed(text: &str) -> String {
    match parse(text) {
        Ok(parsed) => {
            print(&parsed.module, &PrintOptions::default()).unwrap().trim_end().to_owned()
        }
        Err(errors) => format!("{errors}"),
    }
}

/// jaxlib 0.12.0.1 reads `order=` this way (it prints the `type=` that it read).
#[test]
fn order_says_what_type_said() {
    for (element, order, kept) in [
        ("f32", ", order=TOTAL", ", type=TOTALORDER"),
        ("bf16", ", order=TOTAL", ", type=TOTALORDER"),
        ("f32", ", order=PARTIAL", ""),
        ("s32", ", order=TOTAL", ""),
        ("u8", ", order=TOTAL", ""),
        ("pred", ", order=TOTAL", ""),
    ] {
        let expected = comparison(element, kept);
        assert_eq!(printed(&comparison(element, order)), expected.trim_end(), "{element}{order}");
    }
}

#[test]
fn other_orders_are_errors() {
    let no_word = printed(&comparison("f32", ", order=SOME"));
    assert!(no_word.contains("PARTIAL or TOTAL"), "{no_word}");
    let both = printed(&comparison("f32", ", type=FLOAT, order=TOTAL"));
    assert!(both.contains("`type=` or `order=`"), "{both}");
}

/// jaxlib 0.12.0.1 takes a `topk` that does not say so for a stable one.
#[test]
fn topk_is_stable_unless_it_says_otherwise() {
    let topk = |attributes: &str| {
        format!(
            "HloModule m\n\nENTRY %e (x: f32[4]) -> (f32[2], s32[2]) {{\n  %x = f32[4] parameter(0)\n  \
             ROOT %r = (f32[2], s32[2]) topk(%x), k=2{attributes}\n}}"
        )
    };
    assert_eq!(printed(&topk(", is_stable=true")), topk(""));
    assert_eq!(printed(&topk(", largest=true, is_stable=false")), topk(", is_stable=false"));
}
