//! Fixtures and scenes of them.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::{Path, PathBuf};

use tilewright::Verified;
use tilewright_view::picture::{Node, Picture};
use tilewright_view::{Options, Scene};

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub(crate) fn module(path: &str) -> Verified {
    let text = std::fs::read_to_string(fixtures().join(path)).expect(path);
    tilewright::parse(&text).expect(path)
}

pub(crate) fn options() -> Options {
    Options::new(tilewright::target("tpu-like").expect("a target"))
}

pub(crate) fn scene(path: &str) -> Scene {
    Scene::of(&module(path), &options()).expect(path)
}

pub(crate) fn before_and_after(path: &str) -> Scene {
    let before = module(path);
    let target = tilewright::target("tpu-like").expect("a target");
    let done = tilewright::optimize(before.clone(), &tilewright::Options::new(target)).expect(path);
    Scene::before_and_after(&before, &done.module, &done.report, &options()).expect(path)
}

/// A module from the text of its entry computation.
pub(crate) fn entry(instructions: &str) -> Verified {
    let text = format!("HloModule m\n\n{ADD}ENTRY main {{\n{instructions}}}\n");
    tilewright::parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

const ADD: &str = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
                   ROOT c = f32[] add(a, b)\n}\n\n";

pub(crate) fn picture(module: &Verified) -> Picture {
    Scene::of(module, &options()).expect("a picture").sides[0].picture.clone()
}

#[track_caller]
pub(crate) fn node<'a>(picture: &'a Picture, name: &str) -> &'a Node {
    picture.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("no {name}"))
}
