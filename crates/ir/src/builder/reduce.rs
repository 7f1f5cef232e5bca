//! Reductions, windows and sorts.

use super::error::{check_dims, misfit};
use super::{BuildError, Builder};
use crate::entity::{CompId, InstId};
use crate::ops::Op;
use crate::ops::dims::WindowDim;
use crate::ops::reduce::{ReduceAttrs, SortAttrs};
use crate::ops::window::ReduceWindowAttrs;
use crate::types::shape::Dims;

impl Builder {
    /// Adds a reduction: `dimensions` vanish, and the elements along them are
    /// combined with `init`, a scalar, by a computation of an accumulator and an
    /// element. [`Builder::reducer`] makes the usual computations. `f32[2,3]`
    /// reduced over `[1]` is `f32[2]`.
    ///
    /// # Errors
    /// Returns an error if dims do not exist, one is named twice, `init` is not a scalar, or
    /// the computation does not combine elements of this type.
    pub fn reduce(
        &mut self,
        operand: InstId,
        init: InstId,
        dimensions: impl AsRef<[i64]>,
        to_apply: CompId,
    ) -> Result<InstId, BuildError> {
        self.reduced("reduce", &[operand], &[init], dimensions.as_ref(), to_apply)
    }

    /// Adds a reduction of several arrays of the same dims together. The computation takes an
    /// accumulator of each, then an element of each, and yields a tuple of the next
    /// accumulators; the result is a tuple of arrays. Argmax is a reduction of elements and
    /// their places.
    ///
    /// # Errors
    /// Returns an error if the arrays differ in dims, there are not as many scalars as arrays,
    /// dims do not exist, or the computation does not combine elements of these types.
    pub fn reduce_together(
        &mut self,
        operands: impl AsRef<[InstId]>,
        inits: impl AsRef<[InstId]>,
        dimensions: impl AsRef<[i64]>,
        to_apply: CompId,
    ) -> Result<InstId, BuildError> {
        let (operands, inits) = (operands.as_ref(), inits.as_ref());
        self.reduced("reduce_together", operands, inits, dimensions.as_ref(), to_apply)
    }

    fn reduced(
        &mut self,
        method: &'static str,
        operands: &[InstId],
        inits: &[InstId],
        dimensions: &[i64],
        to_apply: CompId,
    ) -> Result<InstId, BuildError> {
        if operands.len() != inits.len() {
            let (arrays, given) = (operands.len(), inits.len());
            let why = format!("it takes an init for each array, and has {given} for {arrays}");
            return Err(misfit(method, "inits", why));
        }
        for &operand in operands {
            check_dims(method, "dimensions", dimensions, self.array(method, operand)?)?;
        }
        let attrs = ReduceAttrs { dimensions: dimensions.into(), to_apply };
        let all = [operands, inits].concat();
        self.made(method, Op::Reduce(Box::new(attrs)), None, &all)
    }

    /// Adds a reduction of each window of an array, as pooling does. `window` has an entry for
    /// each dim; [`WindowDim::new`]`(1)` leaves a dim as it is. `f32[1,8,8,3]` with windows and
    /// strides of `1, 2, 2, 1` becomes `f32[1,4,4,3]`. Padding has the value of `init`.
    ///
    /// # Errors
    /// Returns an error if there is not one entry for each dim, a size, stride or dilation is
    /// less than 1, `init` is not a scalar, or the computation does not combine elements of
    /// this type.
    pub fn reduce_window(
        &mut self,
        operand: InstId,
        init: InstId,
        window: impl AsRef<[WindowDim]>,
        to_apply: CompId,
    ) -> Result<InstId, BuildError> {
        let attrs = ReduceWindowAttrs { window: window.as_ref().into(), to_apply };
        let op = Op::ReduceWindow(Box::new(attrs));
        self.made("reduce_window", op, None, &[operand, init])
    }

    /// Adds a sort along one dim. The comparator takes two elements of the first operand, then
    /// two of the second, and so on, and returns whether the first ones go before the second
    /// ones. All operands are put in the same order. With one operand the result has its shape;
    /// with several it is a tuple.
    ///
    /// # Errors
    /// Returns an error if there are no operands, they differ in dims, the dim does not exist,
    /// or the comparator does not compare elements of these types.
    pub fn sort(
        &mut self,
        operands: impl AsRef<[InstId]>,
        dimension: i64,
        comparator: CompId,
        is_stable: bool,
    ) -> Result<InstId, BuildError> {
        let operands = operands.as_ref();
        for &operand in operands {
            check_dims("sort", "dimension", &[dimension], self.array("sort", operand)?)?;
        }
        let dimensions = Dims::from_slice(&[dimension]);
        let attrs = SortAttrs { dimensions, is_stable, to_apply: comparator };
        self.made("sort", Op::Sort(Box::new(attrs)), None, operands)
    }
}
