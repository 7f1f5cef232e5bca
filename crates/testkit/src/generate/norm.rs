//! Norms over reshapes, as front ends write them: the pattern that the cost-gated
//! passes look for.

use tilewright_ir::{Dims, ElementType, Opcode};

use super::graph::{Graph, Made, Value};
use super::shapes::{all_dims, count, divisors, image_dims, merge, regrouped, some_dims};

impl Graph<'_, '_> {
    /// Statistics over groups of an array's elements, applied to them in the
    /// grouped dims, and back.
    pub(super) fn norm(&mut self) -> Made<()> {
        let image = self.image()?;
        let wide = image.element.bits() < 32 && self.rng.chance(60);
        let x = if wide { self.convert(&image, ElementType::F32)? } else { image.clone() };
        let (dims, reduced) = self.grouping(&x.dims);
        let grouped = self.reshape(&x, &dims)?;
        if self.rng.chance(30) {
            self.keep(grouped.clone());
        }
        let mean = self.mean(&grouped, &reduced)?;
        let spread = self.spread(&mean, &grouped, &reduced)?;
        let mut value = self.binary(Opcode::Subtract, &grouped, &spread)?;
        if self.rng.chance(70) {
            let inverse = self.inverse_deviation(&grouped, &value, &mean, &reduced)?;
            let inverse = self.spread(&inverse, &grouped, &reduced)?;
            value = self.binary(Opcode::Multiply, &value, &inverse)?;
        }
        if self.rng.chance(25) {
            self.keep(value.clone());
        }
        let back = self.reshape(&value, &x.dims)?;
        let back = if wide { self.convert(&back, image.element)? } else { back };
        let result = self.affine(&back)?;
        self.keep(result);
        if self.rng.chance(30) {
            self.keep(mean);
        }
        Ok(())
    }

    /// Returns a float array with something to group.
    fn image(&mut self) -> Made<Value> {
        let fits = |v: &Value| v.is_float() && v.dims.len() > 1 && count(&v.dims) >= 8;
        if let Some(image) = self.pick(fits) {
            return Ok(image);
        }
        let options = self.options();
        let floats: Vec<ElementType> =
            options.element_types.iter().copied().filter(|e| e.is_float()).collect();
        let element = self.rng.pick(&floats).copied().unwrap_or(ElementType::F32);
        let dims = image_dims(self.rng, options.max_elements);
        let image = if self.shared.depth > 0 {
            let scalar = self.scalar(element, 0.5)?;
            self.broadcast(&scalar, &dims, &[])?
        } else {
            self.parameter(element, &dims)?
        };
        self.keep(image.clone());
        Ok(image)
    }

    /// Dims in groups, and those over which statistics run.
    fn grouping(&mut self, dims: &[i64]) -> (Dims, Dims) {
        let splits: Vec<usize> =
            (0..dims.len()).filter(|&d| !divisors(dims[d]).is_empty()).collect();
        let last = splits.last().copied();
        let at = if self.rng.chance(70) { last } else { self.rng.pick(&splits).copied() };
        let Some(at) = at.filter(|_| self.rng.chance(85)) else {
            let grouped = regrouped(self.rng, dims);
            let reduced = some_dims(self.rng, grouped.len());
            return (grouped, reduced);
        };
        let sizes = divisors(dims[at]);
        let size = self.rng.pick(&sizes).copied().unwrap_or(1);
        let mut grouped = Dims::from_slice(dims);
        grouped[at] = dims[at] / size;
        grouped.insert(at + 1, size);
        if self.rng.chance(20) {
            // As for channels-first images: one dim for all but batch and group.
            merge(self.rng, &mut grouped);
        }
        let mut reduced = all_dims(grouped.len());
        let kept = if self.rng.chance(80) { at } else { at + 1 };
        // The reduction of `[B, H, W, G, C/G]` keeps B and G.
        reduced.retain(|&mut d| usize::try_from(d) != Ok(kept));
        if self.rng.chance(75) {
            reduced.retain(|&mut d| d != 0);
        }
        if reduced.is_empty() { (grouped, all_dims(1)) } else { (grouped, reduced) }
    }

    fn mean(&mut self, value: &Value, reduced: &[i64]) -> Made<Value> {
        let odd = self.rng.chance(self.options().odd_init_percent / 4);
        let sum = self.reduce(value, reduced, Opcode::Add, if odd { 1.5 } else { 0.0 })?;
        let terms = (count(&value.dims) / count(&sum.dims).max(1)).max(1);
        let terms = i32::try_from(terms).map_or(1.0, f64::from);
        let share = self.splat(&sum, 1.0 / terms)?;
        self.binary(Opcode::Multiply, &sum, &share)
    }

    /// Returns a statistic in the grouped dims again.
    fn spread(&mut self, value: &Value, like: &Value, reduced: &[i64]) -> Made<Value> {
        let kept: Dims =
            all_dims(like.dims.len()).into_iter().filter(|d| !reduced.contains(d)).collect();
        if self.rng.chance(25) {
            // By way of dims of size 1, as `keepdims` does.
            let mut ones = like.dims.clone();
            for &dim in reduced {
                if let Some(size) = usize::try_from(dim).ok().and_then(|d| ones.get_mut(d)) {
                    *size = 1;
                }
            }
            let value = self.reshape(value, &ones)?;
            let value = self.reshape(&value, &without(&ones, reduced))?;
            return self.broadcast(&value, &like.dims, &kept);
        }
        self.broadcast(value, &like.dims, &kept)
    }

    /// `1 / sqrt(variance + 1)`, in one pass or two.
    fn inverse_deviation(
        &mut self,
        value: &Value,
        centred: &Value,
        mean: &Value,
        reduced: &[i64],
    ) -> Made<Value> {
        let variance = if self.rng.chance(60) {
            let squares = self.binary(Opcode::Multiply, centred, centred)?;
            self.mean(&squares, reduced)?
        } else {
            let squares = self.binary(Opcode::Multiply, value, value)?;
            let squares = self.mean(&squares, reduced)?;
            let square = self.binary(Opcode::Multiply, mean, mean)?;
            let variance = self.binary(Opcode::Subtract, &squares, &square)?;
            let zero = self.splat(&variance, 0.0)?;
            self.binary(Opcode::Maximum, &variance, &zero)?
        };
        let one = self.splat(&variance, 1.0)?;
        let shifted = self.binary(Opcode::Add, &variance, &one)?;
        let inverse = self.unary(Opcode::Rsqrt, &shifted)?;
        Ok(Value { bound: 1.0, ..inverse })
    }

    /// Scaled and shifted along one dim.
    fn affine(&mut self, value: &Value) -> Made<Value> {
        if self.rng.chance(50) || value.dims.is_empty() {
            return Ok(value.clone());
        }
        let dim = value.dims.len() - 1;
        let size = value.dims[dim];
        let fits = |v: &Value| v.element == value.element && v.dims[..] == [size];
        let scale = match self.pick(fits) {
            Some(scale) => scale,
            None if self.shared.depth > 0 => return Ok(value.clone()),
            None => self.parameter(value.element, &[size])?,
        };
        self.keep(scale.clone());
        let to = [i64::try_from(dim).unwrap_or(0)];
        let scale = self.broadcast(&scale, &value.dims, &to)?;
        let scaled = self.binary(Opcode::Multiply, value, &scale)?;
        self.binary(Opcode::Add, &scaled, &scale)
    }
}

fn without(dims: &[i64], gone: &[i64]) -> Dims {
    let kept = |(dim, &size): (usize, &i64)| {
        (!gone.iter().any(|&g| usize::try_from(g) == Ok(dim))).then_some(size)
    };
    dims.iter().enumerate().filter_map(kept).collect()
}
