//! Tests the annotations of a front end.

use super::{F32, printed};
use crate::common::shape;
use tilewright_ir::sharding::{LeafSharding, Placement, TileDevices, Tiling};
use tilewright_ir::{BuildError, Builder, InstId, OpMetadata, Opcode, Shape, Sharding};
use tilewright_text::parse_and_verify;

fn line(source_line: i64) -> OpMetadata {
    OpMetadata { op_name: "model/layer".into(), source_line, ..OpMetadata::default() }
}

fn halves() -> Sharding {
    let tiling =
        Tiling { dims: vec![2], devices: TileDevices::List(vec![0, 1]), subgroups: Vec::new() };
    Sharding::Leaf(LeafSharding::from(Placement::Tiled(tiling)))
}

fn replicated() -> Sharding {
    Sharding::Leaf(LeafSharding::from(Placement::Replicated))
}

fn line_of(b: &Builder, id: InstId) -> Option<i64> {
    b.module().metadata(id).map(|metadata| metadata.source_line)
}

fn sharding_of(b: &Builder, id: InstId) -> Option<Sharding> {
    b.module().extras(id)?.sharding.as_deref().cloned()
}

fn attributes_of(b: &Builder, id: InstId) -> Vec<(&str, &str)> {
    let attributes = b.module().extras(id).map_or(&[][..], |e| &e.frontend_attributes);
    attributes.iter().map(|(name, value)| (name.as_str(), &**value)).collect()
}

#[test]
fn scopes_nest_and_end() -> Result<(), BuildError> {
    let mut b = Builder::new("scopes");
    let x = b.parameter("x", shape("f32[4]"))?;
    let (outer, inner, after) = b.with_metadata(line(1), |b| {
        let outer = b.unary(Opcode::Exp, x)?;
        let inner = b.with_metadata(line(2), |b| b.unary(Opcode::Exp, x))?;
        Ok::<_, BuildError>((outer, inner, b.unary(Opcode::Exp, x)?))
    })?;
    let end = b.unary(Opcode::Exp, x)?;
    let lines = [x, outer, inner, after, end].map(|id| line_of(&b, id));
    assert_eq!(lines, [None, Some(1), Some(2), Some(1), None]);

    let (outer, inner) = b.with_sharding(halves(), |b| {
        let outer = b.unary(Opcode::Exp, x)?;
        Ok::<_, BuildError>((outer, b.with_sharding(replicated(), |b| b.unary(Opcode::Exp, x))?))
    })?;
    let end = b.unary(Opcode::Exp, x)?;
    let found = [outer, inner, end].map(|id| sharding_of(&b, id));
    assert_eq!(found, [Some(halves()), Some(replicated()), None]);

    let pair = |name: &str, value: &str| (name.into(), value.into());
    let both = vec![pair("a", "1"), pair("b", "2")];
    let (outer, inner) = b.with_frontend_attributes(both, |b| {
        let inner = vec![pair("b", "3"), pair("c", "4")];
        let inner = b.with_frontend_attributes(inner, |b| b.unary(Opcode::Exp, x))?;
        Ok::<_, BuildError>((b.unary(Opcode::Exp, x)?, inner))
    })?;
    let end = b.unary(Opcode::Exp, x)?;
    assert_eq!(attributes_of(&b, outer), [("a", "1"), ("b", "2")]);
    assert_eq!(attributes_of(&b, inner), [("a", "1"), ("b", "3"), ("c", "4")]);
    assert_eq!(attributes_of(&b, end), []);
    Ok(())
}

/// A scope ends where what it ran failed, too.
#[test]
fn scopes_end_with_errors() -> Result<(), BuildError> {
    let mut b = Builder::new("errors");
    let x = b.parameter("x", shape("f32[4]"))?;
    let failed = b.with_metadata(line(1), |b| b.unary(Opcode::Add, x));
    assert!(failed.is_err());
    let failed = b.computation("c", |b| b.with_sharding(halves(), |b| b.unary(Opcode::Negate, x)));
    assert!(failed.is_err());
    let y = b.unary(Opcode::Exp, x)?;
    assert_eq!((line_of(&b, y), sharding_of(&b, y)), (None, None));
    Ok(())
}

/// The source line goes into a computation that is made in a scope, as it made
/// that; how the caller's values are sharded does not.
#[test]
fn computations_within_scopes() -> Result<(), BuildError> {
    let mut b = Builder::new("within");
    let x = b.parameter("x", shape("f32[4]"))?;
    let mut inside = x;
    let attributes = vec![("a".into(), "1".into())];
    let after = b.with_metadata(line(1), |b| {
        b.with_frontend_attributes(attributes, |b| {
            b.with_sharding(halves(), |b| {
                b.computation("inner", |b| {
                    inside = b.parameter("p", Shape::scalar(F32))?;
                    Ok(inside)
                })?;
                b.unary(Opcode::Exp, x)
            })
        })
    })?;
    assert_eq!(line_of(&b, inside), Some(1));
    assert_eq!((sharding_of(&b, inside), attributes_of(&b, inside)), (None, vec![]));
    assert_eq!(
        (sharding_of(&b, after), attributes_of(&b, after)),
        (Some(halves()), vec![("a", "1")])
    );
    Ok(())
}

#[test]
fn what_is_said_of_one_instruction() -> Result<(), BuildError> {
    let mut b = Builder::new("one");
    b.header_mut().num_partitions = Some(2);
    let x = b.parameter("x", shape("f32[4]"))?;
    let y = b.unary(Opcode::Exp, x)?;
    b.set_metadata(y, line(7))?;
    b.set_sharding(y, halves())?;
    b.set_frontend_attributes(y, vec![("mode".into(), "fast".into())])?;
    assert_eq!(sharding_of(&b, y), Some(halves()), "each leaves the others");
    let text = printed(&b.finish(y)?);
    for part in [
        "num_partitions=2",
        "sharding={devices=[2]0,1}",
        "frontend_attributes={mode=\"fast\"}",
        "metadata={op_name=\"model/layer\" source_line=7}",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(printed(&parse_and_verify(&text).unwrap()), text);
    Ok(())
}
