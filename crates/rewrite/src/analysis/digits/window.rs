//! How a reduce of a reshape is a window that moves over the reshape's input.

use smallvec::SmallVec;
use tilewright_ir::ops::dims::WindowDim;
use tilewright_ir::types::shape::Dims;

use super::{Digits, marks};

/// How a reduce of a reshape becomes a `reduce-window` of the input.
///
/// Law: `reduce(reshape(X), D) = reshape(reduce-window(reduce(X, source_dims), window))`
/// for an associative and commutative reducer; the reduce of X starts from its
/// identity, and the windows, one for each element of the result, from the init.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowPlan {
    /// The input dims to reduce first, as in [`ReducePlan`](super::ReducePlan);
    /// none if there is nothing to gain from it.
    pub source_dims: Vec<usize>,
    /// The dims that are left of the input then.
    pub source_result: Dims,
    /// The window along each of them.
    pub window: SmallVec<[WindowDim; 6]>,
    /// The dims of what it leaves: of each input dim the part that is kept.
    pub result: Dims,
}

impl Digits {
    /// What of `reduce(reshape(X), reduced_to_dims)` is a window over X; see
    /// [`WindowPlan`]. `None` if no input dim has parts of both kinds, if
    /// what is reduced of one is not all below or all above what is kept, or a dim
    /// number is out of range or repeated.
    ///
    /// What is reduced below what is kept (`H = (H/k, k)` over k) is blocks side by
    /// side; above (`C = (k, C/k)` over k), elements `C/k` apart.
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
        // How dims of one kind lie side by side is of no concern.
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

    /// The window along an input dim, and how many places it takes, where the output
    /// dims are runs of what is reduced and what is kept.
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

/// Adds a size to the last of these runs of one kind, or begins another.
fn add_to_runs(runs: &mut SmallVec<[(bool, i64); 6]>, kind: bool, size: i64) -> Option<()> {
    match runs.last_mut() {
        Some((last, run)) if *last == kind => *run = run.checked_mul(size)?,
        _ => runs.push((kind, size)),
    }
    Some(())
}
