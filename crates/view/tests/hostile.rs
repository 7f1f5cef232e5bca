//! Names and graphs that try to break out of the forms.

use crate::common::{entry, options};
use tilewright::ir::Module;
use tilewright_view::{Emit, Scene};

/// A module whose texts hold what each form could take for its own.
fn hostile() -> Module {
    let module = entry(
        "  x = f32[4] parameter(0), metadata={op_name=\"</script><img src=x>\\\"]]>&amp;\\n\\\\\" source_file=\"a&b<c>'\"}
  y = f32[4] custom-call(x), custom_call_target=\"</script><script>alert(1)</script>\\\"\\\\\\n\"
  ROOT z = f32[4] negate(y), metadata={op_name=\"</title>\\\\\"}
",
    );
    let mut module: Module = (*module).clone();
    module.name = "\"</title>\u{0}\u{1b}\\\n&lt;\u{ffff}".into();
    module
}

#[test]
fn a_page_keeps_names_as_text() {
    let scene = Scene::of(&hostile(), &options()).expect("a picture");
    let page = scene.print(Emit::Html).expect("a page");
    // The data, the library, the layout, the page: nothing else opens or closes a script.
    assert_eq!(page.matches("<script").count(), 4);
    assert_eq!(page.matches("</script").count(), 4);
    assert_eq!(page.matches("<title>").count(), 1);
    assert_eq!(page.matches("</title>").count(), 1);
    assert!(!page.contains("<img src"));
    let data = page.split_once("id=\"data\">").expect("data").1.split_once("</script>");
    let data: serde_json::Value = serde_json::from_str(data.expect("an end").0).expect("JSON");
    assert_eq!(data["title"], "\"</title>\u{0}\u{1b}\\\n&lt;\u{ffff}");
    assert!(data["sides"][0]["nodes"][0]["title"].as_str().expect("a title").contains("</script>"));
}

#[test]
fn a_drawing_keeps_names_as_text() {
    let scene = Scene::of(&hostile(), &options()).expect("a picture");
    let svg = scene.print(Emit::Svg).expect("a drawing");
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let title = document.root_element().children().find(|one| one.has_tag_name("title"));
    let shown = "\"</title>\u{fffd}\u{fffd}\\\n&lt;\u{fffd}";
    assert_eq!(title.and_then(|title| title.text()), Some(shown));
    assert!(document.descendants().all(|one| !one.has_tag_name("script")));
}

#[test]
fn graphviz_keeps_names_as_text() {
    let scene = Scene::of(&hostile(), &options()).expect("a picture");
    let dot = scene.print(Emit::Dot).expect("dot");
    assert!(dot.starts_with("digraph \"\\\"</title>\u{fffd}\u{fffd}\\\\\\n&amp;lt;\u{ffff}\" {"));
    // Every quote that is not escaped opens or closes a string, on its line.
    for line in dot.lines() {
        let mut open = false;
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' if open => drop(chars.next()),
                '"' => open = !open,
                _ => {}
            }
        }
        assert!(!open, "{line}");
    }
}

/// Calls as deep as a text may nest them: boxes within boxes.
#[test]
fn deep_calls_are_drawn() {
    let mut text = String::from(
        "HloModule deep\n\nf0 {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] negate(x)\n}\n\n",
    );
    for i in 1..=400 {
        text += &format!(
            "f{i} {{\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] call(x), to_apply=f{}\n}}\n\n",
            i - 1
        );
    }
    text += "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT r = f32[4] call(x), to_apply=f400\n}\n";
    let module = tilewright::parse(&text).expect("a module");
    let scene = Scene::of(&module, &options()).expect("a picture");
    assert_eq!(scene.sides[0].picture.nodes.len(), 402);
    for emit in [Emit::Dot, Emit::Svg, Emit::Html] {
        scene.print(emit).expect("a form");
    }
}

/// One value that very many read, and a result of very many values.
#[test]
fn wide_graphs_are_drawn() {
    let mut text = String::from("  x = f32[4] parameter(0)\n  y = f32[4] negate(x)\n");
    let (mut shapes, mut names) = (Vec::new(), Vec::new());
    for i in 0..600 {
        text += &format!("  n{i} = f32[4] exponential(y)\n");
        shapes.push("f32[4]");
        names.push(format!("n{i}"));
    }
    text += &format!("  ROOT t = ({}) tuple({})\n", shapes.join(", "), names.join(", "));
    let scene = Scene::of(&entry(&text), &options()).expect("a picture");
    assert_eq!(scene.sides[0].picture.edges.len(), 1200);
    for emit in [Emit::Dot, Emit::Svg, Emit::Html] {
        scene.print(emit).expect("a form");
    }
}

/// Very many operands that are lines in their reader.
#[test]
fn long_lists_are_cut() {
    let mut text = String::new();
    let (mut shapes, mut names) = (Vec::new(), Vec::new());
    for i in 0..20_000 {
        text += &format!("  p{i} = f32[4] parameter({i})\n");
        shapes.push("f32[4]");
        names.push(format!("p{i}"));
    }
    text += &format!("  ROOT t = ({}) tuple({})\n", shapes.join(", "), names.join(", "));
    let scene = Scene::of(&entry(&text), &options()).expect("a picture");
    let node = &scene.sides[0].picture.nodes[0];
    assert_eq!((node.inlined.len(), node.inlined[0].as_str()), (12, "[0] p0 f32[4]"));
    assert_eq!(node.inlined[11], "… and 19989 more");
    assert!(node.shape.chars().count() < 60, "{}", node.shape);
}
