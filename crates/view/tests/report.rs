//! The page on what an optimisation found and did.

use tilewright::Options;
use tilewright_tools::explain;
use tilewright_view::report::{Findings, report};

/// A group sum in a layer, whose names would end a page that does not escape them.
const GROUPS: &str = r#"
HloModule groups

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,32,32,320] parameter(0)
  zero = f32[] constant(0)
  g = f32[8,32,32,32,10] reshape(x), metadata={op_name="jit(step)/jvp(Net)/<b>Norm_0/reshape" source_file="/home/me/</td>net.py" source_line=7}
  ROOT s = f32[8,32] reduce(g, zero), dimensions={1,2,4}, to_apply=add, metadata={op_name="jit(step)/jvp(Net)/<b>Norm_0/reduce_sum" source_file="/home/me/</td>net.py" source_line=8}
}
"#;

fn page(text: &str, target: &str, verdict: Option<&str>) -> String {
    let module = tilewright::parse(text).unwrap();
    let options = Options::new(tilewright::target(target).unwrap());
    let optimized = tilewright::optimize(module.clone(), &options).unwrap();
    let explanation = explain(&module, &optimized, &options).unwrap();
    let [before, after] = tilewright::simplest_forms(&module, &optimized, &options).unwrap();
    let target = &options.target;
    report(&Findings {
        forms: [&before, &after],
        optimized: &optimized,
        explanation: &explanation,
        target,
        verdict,
    })
    .unwrap()
}

#[test]
fn a_page_has_layers_lines_pictures_and_figures() {
    let page = page(GROUPS, "tpu-like", Some("equal but for rounding"));
    for part in [
        "1 layer rewritten:",
        "Net/&#60;b&#62;Norm_0",
        "sums of f32[8,32,32,32,10] over {1,2,4}",
        "/home/me/&#60;/td&#62;net.py:7",
        "<strong>equal but for rounding</strong>",
        "reshape-out-of-region",
        "realigned vectors",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    // The plot, and the layer before and after.
    assert_eq!(page.matches("src=\"data:image/svg+xml;base64,").count(), 3);
}

#[test]
fn a_page_needs_no_network_and_no_script() {
    let page = page(GROUPS, "tpu-like", None);
    assert!(!page.contains("<b>") && !page.contains("</td>net"), "{page}");
    assert!(!page.contains("://") && !page.contains("<script"), "{page}");
    assert!(page.contains("The modules were not compared"), "{page}");
}

#[test]
fn what_is_left_alone_has_a_page_too() {
    // Reshapes cost nothing on a linear memory.
    let page = page(GROUPS, "linear", None);
    assert!(page.contains("Nothing was rewritten:"), "{page}");
    assert!(!page.contains("<h2>Layers") && !page.contains("<img"), "{page}");
}

#[test]
fn pages_are_deterministic() {
    let make = || {
        let page = page(GROUPS, "tpu-like", None);
        // The times of passes differ.
        page.split("<h2>Figures").next().unwrap().to_owned()
    };
    assert_eq!(make(), make());
}
