//! The axes of a program with its operands: dims, sorted by stride and merged, and the axes along
//! which each value varies. `plan.rs` divides this space.

use smallvec::SmallVec;

use super::program::{Id, Operand, Program, ProgramNode};
use crate::error::Error;

/// An axis of a program, perhaps merged from several dims.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpaceAxis {
    /// The number of indices.
    pub(super) len: usize,
    /// For each operand the stride along the axis, in elements.
    pub(super) inputs: SmallVec<[isize; 8]>,
    /// For each output the stride along the axis, in elements; `None` if the array does not have
    /// the axis.
    pub(super) outputs: SmallVec<[Option<isize>; 4]>,
    /// The set of reductions along the axis, by number.
    reduced: u64,
}

impl SpaceAxis {
    /// Checks whether `self` and `inner` can become one axis: the same reductions are along both,
    /// and each stride of `self` is `inner.len` times that of `inner`.
    fn continues(&self, inner: &Self) -> bool {
        let len = isize::try_from(inner.len).ok();
        let times = |stride: isize| len.and_then(|len| stride.checked_mul(len));
        let mut outputs = self.outputs.iter().zip(&inner.outputs);
        self.reduced == inner.reduced
            && self.inputs.iter().zip(&inner.inputs).all(|(&a, &b)| times(b) == Some(a))
            && outputs.all(|(&a, &b)| a == b.and_then(times) && a.is_some() == b.is_some())
    }
}

/// The axes of a program with its operands, outermost first, and the axes along which values vary.
/// Sets of axes and of reductions are bits.
#[derive(Debug)]
pub(super) struct Space {
    pub(super) axes: Vec<SpaceAxis>,
    /// For each dim its axis, and the number of the axis's indices between neighbours along the
    /// dim.
    pub(super) dims: Vec<Option<(usize, usize)>>,
    /// The nodes that are reductions. The number of a reduction is its index here.
    pub(super) reductions: Vec<usize>,
    /// For each node the axes along which it varies.
    pub(super) varies: Vec<u64>,
    /// For each node whether an output needs it.
    pub(super) needed: Vec<bool>,
}

impl Space {
    pub(super) fn of(program: &Program, operands: &[Operand<'_>]) -> Result<Self, Error> {
        let nodes = program.nodes.iter().enumerate();
        let reductions: Vec<usize> =
            nodes.filter(|(_, n)| matches!(n, ProgramNode::Reduce(..))).map(|(i, _)| i).collect();
        let needed = needed(program);
        let mut all = axes(program, operands, &reductions)?;
        let idle = idle(program, operands, &needed);
        all.retain(|(dim, _)| idle >> dim & 1 == 0);
        sort(&mut all, operands);
        let mut dims = vec![None; program.dims.len()];
        let mut merged: Vec<SpaceAxis> = Vec::new();
        // Axes are pushed from the innermost dim on, and reversed below.
        for (dim, axis) in all.into_iter().rev() {
            let last = merged.len();
            match merged.last_mut() {
                Some(inner) if axis.continues(inner) => {
                    dims[dim] = Some((last - 1, inner.len));
                    inner.len *= axis.len;
                }
                _ => {
                    dims[dim] = Some((last, 1));
                    merged.push(axis);
                }
            }
        }
        merged.reverse();
        for place in dims.iter_mut().flatten() {
            place.0 = merged.len() - 1 - place.0;
        }
        let mut space = Self { axes: merged, dims, reductions, varies: Vec::new(), needed };
        space.varies(program);
        for (number, output) in program.outputs.iter().enumerate() {
            if space.varies[output.of.0] & !space.output_axes(number) != 0 {
                return Err(Error::Dropped(number));
            }
        }
        Ok(space)
    }

    /// The set of axes that an output's array has.
    pub(super) fn output_axes(&self, output: usize) -> u64 {
        self.set(|axis| axis.outputs.get(output).is_some_and(Option::is_some))
    }

    /// The set of axes along which a reduction, by number, combines elements.
    pub(super) fn reduced(&self, reduction: usize) -> u64 {
        self.set(|axis| axis.reduced >> reduction & 1 == 1)
    }

    pub(super) fn all(&self) -> u64 {
        self.set(|_| true)
    }

    fn set(&self, has: impl Fn(&SpaceAxis) -> bool) -> u64 {
        let axes = self.axes.iter().enumerate();
        axes.fold(0, |set, (i, axis)| set | u64::from(has(axis)) << i)
    }

    /// The number of indices of a set of axes: the product of their lengths.
    pub(super) fn size(&self, set: u64) -> usize {
        let axes = self.axes.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
        axes.map(|(_, axis)| axis.len).product()
    }

    /// The set of reductions, by number, that outputs need.
    pub(super) fn used(&self) -> u64 {
        let nodes = self.reductions.iter().enumerate().filter(|&(_, &node)| self.needed[node]);
        nodes.fold(0, |set, (number, _)| set | 1 << number)
    }

    /// The number of the reduction that is this node.
    pub(super) fn number(&self, node: usize) -> usize {
        self.reductions.binary_search(&node).unwrap_or(0)
    }

    /// Finds the axes along which each node varies.
    fn varies(&mut self, program: &Program) {
        for (place, node) in program.nodes.iter().enumerate() {
            let varies = match *node {
                ProgramNode::Input(input) => {
                    self.set(|axis| axis.inputs.get(input).is_some_and(|&s| s != 0))
                }
                ProgramNode::Reduce(_, of, _) => {
                    self.varies[of.0] & !self.reduced(self.number(place))
                }
                _ => operands_of(node).iter().fold(0, |set, of| set | self.varies[of.0]),
            };
            self.varies.push(varies);
        }
    }
}

/// Returns for each node whether an output needs it.
fn needed(program: &Program) -> Vec<bool> {
    let mut needed = vec![false; program.nodes.len()];
    for output in &program.outputs {
        needed[output.of.0] = true;
    }
    for place in (0..program.nodes.len()).rev() {
        if needed[place] {
            for of in operands_of(&program.nodes[place]) {
                needed[of.0] = true;
            }
        }
    }
    needed
}

/// Returns the set of dims along which nothing happens: no output has them, and no value that is
/// needed varies or is reduced along them.
fn idle(program: &Program, operands: &[Operand<'_>], needed: &[bool]) -> u64 {
    let of = |is: &dyn Fn(usize) -> bool| {
        (0..program.dims.len()).fold(0u64, |set, dim| set | u64::from(is(dim)) << dim)
    };
    let busy =
        program.nodes.iter().zip(needed).filter(|(_, is)| **is).map(|(node, _)| match node {
            ProgramNode::Input(input) => operands.get(*input).map_or(0, |operand| {
                of(&|dim| operand.strides().get(dim).is_some_and(|&stride| stride != 0))
            }),
            ProgramNode::Reduce(_, _, axes) => *axes,
            _ => 0,
        });
    let busy = busy.fold(0, |all, set| all | set);
    program.outputs.iter().fold(!busy, |idle, output| idle & output.dropped)
}

/// Returns the values that a node is computed from.
pub(super) fn operands_of(node: &ProgramNode) -> SmallVec<[Id; 3]> {
    match *node {
        ProgramNode::Input(_) | ProgramNode::Constant(_) => SmallVec::new(),
        ProgramNode::Unary(_, a) | ProgramNode::Reduce(_, a, _) | ProgramNode::Deviations(a) => {
            SmallVec::from_slice(&[a])
        }
        ProgramNode::Binary(_, a, b) => SmallVec::from_slice(&[a, b]),
        ProgramNode::Select(a, b, c) => SmallVec::from_slice(&[a, b, c]),
    }
}

/// Returns an axis for each dim that has another size than 1, outermost first, with the dim.
fn axes(
    program: &Program,
    operands: &[Operand<'_>],
    reductions: &[usize],
) -> Result<Vec<(usize, SpaceAxis)>, Error> {
    let mut strides: Vec<isize> = vec![1; program.outputs.len()];
    let mut axes = Vec::new();
    for (dim, &len) in program.dims.iter().enumerate().rev() {
        let signed = isize::try_from(len).map_err(|_| Error::TooLarge)?;
        let mut outputs = SmallVec::new();
        for (output, stride) in program.outputs.iter().zip(&mut strides) {
            let has = output.dropped >> dim & 1 == 0;
            outputs.push(has.then_some(*stride));
            if has {
                *stride = stride.checked_mul(signed).ok_or(Error::TooLarge)?;
            }
        }
        let along = |&node: &usize| matches!(program.nodes.get(node), Some(ProgramNode::Reduce(_, _, set)) if set >> dim & 1 == 1);
        let numbers = reductions.iter().map(along).enumerate();
        let reduced = numbers.fold(0, |set, (i, along)| set | u64::from(along) << i);
        let inputs = operands.iter().map(|o| o.strides().get(dim).copied().unwrap_or(0)).collect();
        if len != 1 {
            axes.push((dim, SpaceAxis { len, inputs, outputs, reduced }));
        }
    }
    axes.reverse();
    Ok(axes)
}

/// Sorts axes by their strides in the first operand that varies along all of them, the greatest
/// stride first, so that this operand is read in order. Without such an operand, the order stays.
fn sort(axes: &mut [(usize, SpaceAxis)], operands: &[Operand<'_>]) {
    let is_full = |&input: &usize| axes.iter().all(|(_, axis)| axis.inputs[input] != 0);
    if let Some(main) = (0..operands.len()).find(is_full) {
        axes.sort_by_key(|(_, axis)| std::cmp::Reverse(axis.inputs[main].unsigned_abs()));
    }
}
