//! Plans to replace a reduce of a reshape by a window that moves over the reshape's input.

use smallvec::SmallVec;
use tilewright_ir::ops::dims::WindowDim;
use tilewright_ir::types::shape::Dims;

use super::{Digits, marks};

/// A plan to replace a reduce of a reshape by a `reduce-window` of the input.
///
/// Law: `reduce(reshape(X), D) = reshape(reduce-window(reduce(X, source_dims), window))`
/// for an associative and commutative reducer; the reduce of X starts from its
/// identity, and the windows, one for each element of the result, from the init.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowPlan {
    /// The input dims to reduce first, as in [`ReducePlan`](super::ReducePlan); empty if nothing
    /// can be reduced first.
    pub source_dims: Vec<usize>,
    /// The input dims that remain.
    pub source_result: Dims,
    /// The window along each of these dims.
    pub window: SmallVec<[WindowDim; 6]>,
    /// The dims of the result of the window: the kept part of each input dim.
    pub result: Dims,
}

impl Digits {
    /// Returns the part of `reduce(reshape(X), reduced_to_dims)` that is a window over X; see
    /// [`WindowPlan`]. `None` if no input dim has both a reduced and a kept part, if the
    /// reduced part of one is neither all below nor all above the kept part, or a dim number is
    /// out of range or repeated.
    ///
    /// A reduced part below the kept part (`H = (H/k, k)` over k) forms contiguous blocks; above it
    /// (`C = (k, C/k)` over k), it forms elements `C/k` apart.
    pub fn windows(&self, reduced_to_dims: &[usize]) -> Option<WindowPlan> {
        let (source_dims, source_result, to, reduced) = match self.reduce_first(reduced_to_dims) {
            Some(first) => {
                let reduced = marks(&first.remaining, first.reshape_to.len())?;
                (first.source_dims, first.source_result, first.reshape_to, reduced)
            }
            None => {
                let reduced = marks(reduced_to_dims, self.to.dims.len())?;
                (Vec::new(), self.from.dims.clone(), self.to.dims.clone(), reduced)
            }
        };
        // Neighbouring dims that are all reduced or all kept count as one.
        let mut runs: SmallVec<[(bool, i64); 6]> = SmallVec::new();
        for (&size, reduced) in to.iter().zip(reduced).filter(|&(&size, _)| size > 1) {
            add_to_runs(&mut runs, reduced, size)?;
        }
        let sizes: Dims = runs.iter().map(|&(_, size)| size).collect();
        let digits = Self::of_reshape(&source_result, &sizes)?;
        let dims = 0..source_result.len();
        let pairs: Option<Vec<_>> = dims.map(|dim| digits.window_along(dim, &runs)).collect();
        let (window, result): (SmallVec<[WindowDim; 6]>, Dims) = pairs?.into_iter().unzip();
        let any = window.iter().any(|w| w.size > 1);
        any.then_some(WindowPlan { source_dims, source_result, window, result })
    }

    /// Returns the window along an input dim, and the number of its positions, given the output
    /// dims as runs of reduced and of kept dims.
    fn window_along(&self, dim: usize, runs: &[(bool, i64)]) -> Option<(WindowDim, i64)> {
        let mut parts: SmallVec<[(bool, i64); 6]> = SmallVec::new();
        for digit in self.digits.get(self.digits_of_from(dim))? {
            if digit.is_opaque() {
                return None;
            }
            add_to_runs(&mut parts, runs.get(digit.to.start)?.0, digit.size)?;
        }
        match *parts {
            [] => Some((WindowDim::new(1), 1)),
            [(false, kept)] => Some((WindowDim::new(1), kept)),
            [(false, kept), (true, size)] => {
                Some((WindowDim { stride: size, ..WindowDim::new(size) }, kept))
            }
            [(true, size), (false, kept)] => {
                Some((WindowDim { window_dilation: kept, ..WindowDim::new(size) }, kept))
            }
            _ => None,
        }
    }
}

/// Extends the last run if it is of the same kind, or begins another.
fn add_to_runs(runs: &mut SmallVec<[(bool, i64); 6]>, kind: bool, size: i64) -> Option<()> {
    match runs.last_mut() {
        Some((last, run)) if *last == kind => *run = run.checked_mul(size)?,
        _ => runs.push((kind, size)),
    }
    Some(())
}
