//! Reductions without elements to combine: either the results are empty too, or every result is
//! the init.

use tilewright_ir::shape::ArrayShape;
use tilewright_target::{Physical, Target};

use super::ReductionSpec;
use super::blocks::{block_bytes, signed};
use super::fused::start;
use super::state::{Statements, convert, set};
use crate::error::{LowerError, TooLarge};
use crate::kernel::build::Build;
use crate::kernel::{BufferAddress, BufferId, Expr, Kernel, Mask, Space, Statement, Value};

/// Returns the kernel of a reduction of an array without elements; `None` for other reductions.
pub(super) fn kernel(
    reduction: &ReductionSpec,
    target: &Target,
) -> Result<Option<Kernel>, LowerError> {
    let is_empty = |shape: &ArrayShape| shape.dims().contains(&0);
    if !reduction.walked().any(is_empty) {
        return Ok(None);
    }
    let mut build = Build::new(&reduction.name, &target.name);
    for shape in reduction.walked() {
        build.buffer("x", Space::In, shape.element_type, places(target, shape)?);
    }
    let mut body = Statements::new();
    for (&element_type, result) in reduction.inits.iter().zip(&reduction.results) {
        let scalar = places(target, &ArrayShape::scalar(element_type))?;
        let init = build.buffer("init", Space::In, element_type, scalar);
        let len = places(target, result)?;
        let output = build.buffer("y", Space::Out, result.element_type, len);
        if !is_empty(result) {
            let from = Filled { init, init_type: element_type, scalar, output, len };
            body.extend(from.filled(result, target, &mut build)?);
        }
    }
    Ok(Some(build.finish(body)))
}

/// A result that equals its init at every index.
struct Filled {
    init: BufferId,
    init_type: tilewright_ir::ElementType,
    scalar: u64,
    output: BufferId,
    len: u64,
}

impl Filled {
    /// Fills a part of vector memory and copies it repeatedly until the whole result is written.
    fn filled(
        &self,
        result: &ArrayShape,
        target: &Target,
        build: &mut Build,
    ) -> Result<Statements, LowerError> {
        let vector = target.vector_elements(result.element_type);
        let most = block_bytes(target) / u64::from(result.element_type.bytes()).max(1);
        let vectors = self.len.div_ceil(vector).min(most / vector).max(1);
        let part = vectors.checked_mul(vector).ok_or(TooLarge::Elements)?;
        let init_here = build.buffer("start", Space::Vmem, self.init_type, self.scalar);
        let results = build.buffer("ys", Space::Vmem, result.element_type, part);
        let mut body = vec![
            Statement::Copy { to: start(init_here), from: start(self.init), len: 1.into() },
            Statement::Wait(init_here),
        ];
        let mut register = build.register("s", self.init_type, vector);
        body.push(set(register, Value::Scalar(start(init_here))));
        if result.element_type != self.init_type {
            let converted = build.register("w", result.element_type, vector);
            body.push(set(converted, convert(register)?));
            register = converted;
        }
        let index = build.index("v");
        let to = BufferAddress { buffer: results, at: Expr::from(index) * signed(vector)? };
        let store = Statement::Store { to, from: register, mask: Mask::new() };
        let count = signed(vectors)?.into();
        body.push(Statement::For { index, count, body: vec![store] });
        let index = build.index("o");
        let copy = |at: Expr, len: u64| -> Result<Statement, LowerError> {
            let to = BufferAddress { buffer: self.output, at };
            Ok(Statement::Copy { to, from: start(results), len: signed(len)?.into() })
        };
        let whole = signed(self.len / part)?;
        let body_of_copies = vec![copy(Expr::from(index) * signed(part)?, part)?];
        if whole > 0 {
            body.push(Statement::For { index, count: whole.into(), body: body_of_copies });
        }
        let rest = self.len % part;
        if rest > 0 {
            body.push(copy(signed(self.len - rest)?.into(), rest)?);
        }
        Ok(body)
    }
}

/// Elements of memory that an array takes, padding included.
fn places(target: &Target, shape: &ArrayShape) -> Result<u64, LowerError> {
    Physical::of(target, shape).places().ok_or_else(|| TooLarge::Elements.into())
}
