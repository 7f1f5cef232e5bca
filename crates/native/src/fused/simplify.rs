//! Rewrites a program before it is planned, so that it reads its operands less often. `run.rs` then
//! runs the new program.
//!
//! ```text
//! m = sum(x) / n,  v = sum((x - m)^2)   become   m, v = moments(x)
//! sum(-x)   becomes   0 - sum(x)
//! ```
//!
//! One reading gives both moments. The means of parts are combined in `f64`; the sum of squares is
//! made of those of the parts about their own means, and of the distances of these means
//! ([`Reduction::Moments`]). Both are at least as accurate as the sums that they replace. The
//! negated sum is exact, since a sum is never `-0.0`.

use super::program::{Binary, Id, MOST, Program, ProgramNode, Reduction, Unary};

/// Returns a program that computes the same outputs in a better form, if there is one.
pub(super) fn simplified(program: &Program) -> Option<Program> {
    let found: Vec<Option<SquaredDeviations>> =
        (0..program.nodes.len()).map(|place| SquaredDeviations::at(program, place)).collect();
    let (reductions, new) = (
        program.nodes.iter().filter(|node| matches!(node, ProgramNode::Reduce(..))).count(),
        found.iter().flatten().count(),
    );
    let negated = |place: &usize| negated_sum(program, *place).is_some();
    let has_negated = (0..program.nodes.len()).any(|place| negated(&place));
    if (new == 0 && !has_negated) || reductions + new > MOST {
        return None;
    }
    let mut better = Program { nodes: Vec::new(), ..program.clone() };
    // For each node its id in the new program.
    let mut now: Vec<Id> = Vec::with_capacity(program.nodes.len());
    // The moments replace a mean. They come just before the mean's sum, which is the first of each
    // pair.
    let mut moments: Vec<(usize, Id)> = Vec::new();
    for (place, node) in program.nodes.iter().enumerate() {
        if let Some(SquaredDeviations { sum, x, axes, .. }) =
            found.iter().flatten().find(|found| found.sum == place)
        {
            let id = better.push(ProgramNode::Reduce(Reduction::Moments, now[x.0], *axes));
            moments.push((*sum, id));
        }
        let moments_of = |sum: usize| moments.iter().find(|(of, _)| *of == sum).map(|(_, id)| *id);
        let is_mean = |found: &&SquaredDeviations| found.mean == place;
        let id = if let Some(mean) = found.iter().flatten().find(is_mean) {
            moments_of(mean.sum)
        } else if let Some(found) = &found[place] {
            moments_of(found.sum).map(|id| better.push(ProgramNode::Deviations(id)))
        } else if let Some((x, axes)) = negated_sum(program, place) {
            let zero = better.push(ProgramNode::Constant(0.0));
            let sum = better.push(ProgramNode::Reduce(Reduction::Sum, now[x.0], axes));
            Some(better.push(ProgramNode::Binary(Binary::Subtract, zero, sum)))
        } else {
            None
        };
        let id = id.unwrap_or_else(|| better.push(mapped(*node, &now)));
        now.push(id);
    }
    for output in &mut better.outputs {
        output.of = now[output.of.0];
    }
    Some(better)
}

/// Returns `x` and the axes, if the node is `sum(-x)`.
fn negated_sum(program: &Program, place: usize) -> Option<(Id, u64)> {
    let Some(&ProgramNode::Reduce(Reduction::Sum, of, axes)) = program.nodes.get(place) else {
        return None;
    };
    match program.nodes.get(of.0) {
        Some(&ProgramNode::Unary(Unary::Negate, x)) => Some((x, axes)),
        _ => None,
    }
}

/// A node that is `sum((x - mean)^2)` with `mean = sum(x) / n`, along the same axes.
struct SquaredDeviations {
    x: Id,
    axes: u64,
    /// The nodes of `sum(x)` and of the mean.
    sum: usize,
    mean: usize,
}

impl SquaredDeviations {
    fn at(program: &Program, place: usize) -> Option<Self> {
        let node = |id: Id| program.nodes.get(id.0).copied();
        let Some(ProgramNode::Reduce(Reduction::Sum, squares, axes)) = node(Id(place)) else {
            return None;
        };
        let Some(ProgramNode::Binary(Binary::Multiply, a, b)) = node(squares) else { return None };
        let Some(ProgramNode::Binary(Binary::Subtract, x, mean)) = node(a) else { return None };
        let Some(ProgramNode::Binary(op, sum, factor)) = node(mean) else { return None };
        let Some(ProgramNode::Reduce(Reduction::Sum, of, same)) = node(sum) else { return None };
        let Some(ProgramNode::Constant(factor)) = node(factor) else { return None };
        let count = program.count(axes);
        let is_mean = match op {
            Binary::Divide => factor == count,
            // The reciprocal of a power of two is exact.
            Binary::Multiply => factor * count == 1.0 && count.log2().fract() == 0.0,
            _ => false,
        };
        (a == b && of == x && same == axes && is_mean).then_some(Self {
            x,
            axes,
            sum: sum.0,
            mean: mean.0,
        })
    }
}

/// Returns a node with ids of the new program: `now` has that of each node.
fn mapped(node: ProgramNode, now: &[Id]) -> ProgramNode {
    let to = |id: Id| now.get(id.0).copied().unwrap_or(id);
    match node {
        ProgramNode::Input(_) | ProgramNode::Constant(_) => node,
        ProgramNode::Unary(op, a) => ProgramNode::Unary(op, to(a)),
        ProgramNode::Binary(op, a, b) => ProgramNode::Binary(op, to(a), to(b)),
        ProgramNode::Select(a, b, c) => ProgramNode::Select(to(a), to(b), to(c)),
        ProgramNode::Reduce(reduction, a, axes) => ProgramNode::Reduce(reduction, to(a), axes),
        ProgramNode::Deviations(a) => ProgramNode::Deviations(to(a)),
    }
}
