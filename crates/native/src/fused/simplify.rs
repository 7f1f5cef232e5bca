//! Finds what is computed faster in another form.
//!
//! ```text
//! m = sum(x) / n,  v = sum((x - m)^2)   become   m, v = moments(x)
//! sum(-x)   becomes   0 - sum(x)
//! ```
//!
//! One reading gives both moments. The mean is that of parts, combined in `f64`; the sum of squares is
//! that of the parts about their own means, with what they lie apart ([`Reduction::Moments`]). Both are
//! at least as near as what they take the place of. The negative sum is exact: a sum is never `-0.0`.

use super::program::{Binary, Id, MOST, Node, Program, Reduction, Unary};

/// Returns a program that computes the same in a better form, if there is one.
pub(super) fn simplified(program: &Program) -> Option<Program> {
    let found: Vec<Option<Found>> =
        (0..program.nodes.len()).map(|place| Found::at(program, place)).collect();
    let (reductions, new) = (
        program.nodes.iter().filter(|node| matches!(node, Node::Reduce(..))).count(),
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
    // The moments of a mean's node come where its sum is.
    let mut moments: Vec<(usize, Id)> = Vec::new();
    for (place, node) in program.nodes.iter().enumerate() {
        if let Some(Found { sum, x, axes, .. }) =
            found.iter().flatten().find(|found| found.sum == place)
        {
            let id = better.push(Node::Reduce(Reduction::Moments, now[x.0], *axes));
            moments.push((*sum, id));
        }
        let moments_of = |sum: usize| moments.iter().find(|(of, _)| *of == sum).map(|(_, id)| *id);
        let is_mean = |found: &&Found| found.mean == place;
        let id = if let Some(mean) = found.iter().flatten().find(is_mean) {
            moments_of(mean.sum)
        } else if let Some(found) = &found[place] {
            moments_of(found.sum).map(|id| better.push(Node::Deviations(id)))
        } else if let Some((x, axes)) = negated_sum(program, place) {
            let zero = better.push(Node::Constant(0.0));
            let sum = better.push(Node::Reduce(Reduction::Sum, now[x.0], axes));
            Some(better.push(Node::Binary(Binary::Subtract, zero, sum)))
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

/// Returns the value whose negation a node adds up, and the axes.
fn negated_sum(program: &Program, place: usize) -> Option<(Id, u64)> {
    let Some(&Node::Reduce(Reduction::Sum, of, axes)) = program.nodes.get(place) else {
        return None;
    };
    match program.nodes.get(of.0) {
        Some(&Node::Unary(Unary::Negate, x)) => Some((x, axes)),
        _ => None,
    }
}

/// A sum of squared deviations from a mean.
struct Found {
    x: Id,
    axes: u64,
    /// The node of the sum that the mean is made of, and that of the mean.
    sum: usize,
    mean: usize,
}

impl Found {
    fn at(program: &Program, place: usize) -> Option<Self> {
        let node = |id: Id| program.nodes.get(id.0).copied();
        let Some(Node::Reduce(Reduction::Sum, squares, axes)) = node(Id(place)) else {
            return None;
        };
        let Some(Node::Binary(Binary::Multiply, a, b)) = node(squares) else { return None };
        let Some(Node::Binary(Binary::Subtract, x, mean)) = node(a) else { return None };
        let Some(Node::Binary(op, sum, factor)) = node(mean) else { return None };
        let Some(Node::Reduce(Reduction::Sum, of, same)) = node(sum) else { return None };
        let Some(Node::Constant(factor)) = node(factor) else { return None };
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

/// A node with the ids of another program.
fn mapped(node: Node, now: &[Id]) -> Node {
    let to = |id: Id| now.get(id.0).copied().unwrap_or(id);
    match node {
        Node::Input(_) | Node::Constant(_) => node,
        Node::Unary(op, a) => Node::Unary(op, to(a)),
        Node::Binary(op, a, b) => Node::Binary(op, to(a), to(b)),
        Node::Select(a, b, c) => Node::Select(to(a), to(b), to(c)),
        Node::Reduce(reduction, a, axes) => Node::Reduce(reduction, to(a), axes),
        Node::Deviations(a) => Node::Deviations(to(a)),
    }
}
