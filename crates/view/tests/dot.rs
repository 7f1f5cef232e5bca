//! What pictures of small modules have in them, as texts to read.

use crate::common;
use crate::common::{before_and_after, fixtures, scene};
use tilewright_view::{Emit, Scene};

fn dot(scene: &Scene) -> String {
    scene.print(Emit::Dot).expect("dot")
}

macro_rules! snapshot {
    ($test:ident, $scene:expr) => {
        #[test]
        fn $test() {
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(stringify!($test), dot(&$scene));
            });
        }
    };
}

snapshot!(group_norm, scene("real/group_norm_nhwc_4x64x64x320.hlo"));
snapshot!(group_norm_after, before_and_after("real/group_norm_nhwc_4x64x64x320.hlo"));
snapshot!(while_loop, scene("ops/while/counts.hlo"));
snapshot!(conditional, scene("ops/conditional/rows.hlo"));
snapshot!(fusion, scene("ops/fusion/square.hlo"));
snapshot!(collective, scene("sharded/psum_groups.hlo"));
snapshot!(map_and_loop, scene("ops/map/loop.hlo"));

/// Graphviz reads what is written, where it is installed.
#[test]
fn graphviz_reads_it() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let program = Command::new("dot")
        .args(["-Tdot", "-o", "/dev/null"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut program) = program else { return };
    let text = dot(&before_and_after("real/group_norm_nhwc_4x64x64x320.hlo"));
    program.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it is read");
    let done = program.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn pictures_are_the_same_every_time() {
    for path in ["real/group_norm_nhwc_4x64x64x320.hlo", "text/ok/compiled_unet_block.hlo"] {
        for emit in [Emit::Dot, Emit::Svg, Emit::Html] {
            let draw = || before_and_after(path).print(emit).expect(path);
            assert_eq!(draw(), draw(), "{path} as {emit:?}");
        }
    }
}

#[test]
fn every_fixture_is_drawn() {
    let mut drawn = 0;
    for folder in ["models", "text/ok", "sharded", "devices", "torch"] {
        for file in std::fs::read_dir(fixtures().join(folder)).expect(folder) {
            let path = file.expect("a file").path();
            if path.extension().is_none_or(|extension| extension != "hlo") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a fixture");
            let Ok(module) = tilewright::parse(&text) else { continue };
            let scene = Scene::of(&module, &common::options());
            let scene = scene.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for emit in [Emit::Dot, Emit::Html] {
                scene.print(emit).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
            svg_has_every_node(&scene, &path);
            drawn += 1;
        }
    }
    assert!(drawn > 200, "{drawn} fixtures");
}

fn svg_has_every_node(scene: &Scene, path: &std::path::Path) {
    let nodes = &scene.sides[0].picture.nodes;
    match scene.print(Emit::Svg) {
        Ok(svg) => {
            let document = roxmltree::Document::parse(&svg).expect("XML");
            let is_node = |one: &roxmltree::Node<'_, '_>| {
                one.attribute("class").is_some_and(|class| class.starts_with("node "))
            };
            assert_eq!(document.descendants().filter(is_node).count(), nodes.len());
            assert!(!svg.contains("NaN") && !svg.contains("inf,"), "{}", path.display());
        }
        Err(tilewright_view::ViewError::TooLarge { nodes: found, most, .. }) => {
            assert_eq!((found, most), (nodes.len(), 800), "{}", path.display());
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}
