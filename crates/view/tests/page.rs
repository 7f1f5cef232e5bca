//! The boxes that a page adds: scopes of the framework's program, and parts of long lists.

use std::collections::BTreeMap;

use crate::common::{entry, options};
use serde_json::Value;
use tilewright_view::{Emit, Scene};

/// A chain of additions, with the scope of each.
fn chain(count: usize, scope: impl Fn(usize) -> Option<String>) -> Value {
    let mut text = String::from("  x0 = f32[4] parameter(0)\n");
    for i in 1..=count {
        let root = if i == count { "ROOT " } else { "" };
        let name = scope(i).map(|scope| format!(", metadata={{op_name=\"{scope}/add\"}}"));
        let name = name.unwrap_or_default();
        text += &format!("  {root}x{i} = f32[4] add(x{}, x{}){name}\n", i - 1, i / 2);
    }
    let page = Scene::of(&entry(&text), &options()).expect("a picture").print(Emit::Html);
    let page = page.expect("a page");
    let data = page.split_once("id=\"data\">").expect("data").1.split_once("</script>");
    serde_json::from_str(data.expect("an end").0).expect("JSON")
}

/// The titles of boxes with their kinds and numbers of things, each after the box around it.
fn boxes(data: &Value) -> Vec<(String, String, usize)> {
    let side = &data["sides"][0];
    let mut things: BTreeMap<u64, usize> = BTreeMap::new();
    let all = side["boxes"].as_array().expect("boxes");
    for (index, one) in all.iter().enumerate() {
        if let Some(parent) = one["parent"].as_u64() {
            assert!(parent < index as u64, "box {index} stands before the one around it");
            *things.entry(parent).or_default() += 1;
        }
    }
    for node in side["nodes"].as_array().expect("nodes") {
        *things.entry(node["box"].as_u64().expect("a box")).or_default() += 1;
    }
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let all = all.iter().zip(0..);
    all.map(|(one, index)| {
        (text(&one["title"]), text(&one["kind"]), things.get(&index).copied().unwrap_or(0))
    })
    .collect()
}

#[test]
fn scopes_are_boxes() {
    let scope = |i| Some(format!("jit(f)/{}/block{}", ["down", "up"][i / 41], i / 10));
    let found = boxes(&chain(80, scope));
    let titles: Vec<&str> = found.iter().map(|(title, _, _)| title.as_str()).collect();
    // What all have in common is no box; nor is `block8` in `up`, with one addition.
    let blocks = ["block0", "block1", "block2", "block3"];
    let more = ["up", "block4", "block5", "block6", "block7"];
    assert_eq!(titles, [&["main", "down"][..], &blocks, &more].concat());
    assert!(found[1..].iter().all(|(_, kind, _)| kind == "scope"));
    // Nine additions of `block0` (x1 to x9), and ten of the next.
    assert_eq!((found[2].2, found[3].2), (9, 10));
}

#[test]
fn instructions_without_names_are_in_the_scope_of_their_readers() {
    let scope = |i: usize| (!i.is_multiple_of(3)).then(|| format!("jit(f)/stage{}", i / 30));
    let found = boxes(&chain(89, scope));
    assert_eq!(found[0].2, 3, "{found:?}");
    assert_eq!(found[1].2 + found[2].2 + found[3].2, 89);
}

#[test]
fn without_a_reader_in_a_scope_it_is_the_scope_of_the_operand() {
    // The last ten have no names, and nothing with a name reads them.
    let scope = |i: usize| (i <= 50).then(|| format!("jit(f)/stage{}", i / 26));
    let found = boxes(&chain(60, scope));
    let sizes: Vec<(&str, usize)> =
        found.iter().map(|(title, _, things)| (title.as_str(), *things)).collect();
    // The result, x60, is in no scope.
    assert_eq!(sizes, [("main", 3), ("stage0", 25), ("stage1", 34)]);
}

#[test]
fn long_lists_are_cut_into_parts() {
    let found = boxes(&chain(3000, |_| None));
    assert!(found.iter().all(|(_, _, things)| *things <= 48), "{found:?}");
    assert!(found[1..].iter().all(|(_, kind, _)| kind == "part"));
    // 3000 / 24 = 125 parts, in 6 parts of at most 24.
    assert_eq!((found.len(), found[0].2), (1 + 6 + 125, 6));
    assert_eq!(found[2].0, "x1 … x24");
}

#[test]
fn short_computations_stay_as_they_are() {
    let found = boxes(&chain(40, |i| Some(format!("jit(f)/scope{}", i / 5))));
    assert_eq!(found, [("main".to_owned(), "entry".to_owned(), 40)]);
}
