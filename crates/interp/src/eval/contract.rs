//! Contractions: dots and convolutions.
//!
//! Both bring their operands into one form and leave the sums to
//! [`matmul`](super::matmul). Floats of all types are multiplied and added in
//! `f64` and rounded once, integers in 64 bits and wrapped once; precision and
//! algorithm attributes ask for less than that and are ignored.

use std::borrow::Cow;

use rayon::iter::{IndexedParallelIterator as _, IntoParallelIterator as _, ParallelIterator as _};
use smallvec::SmallVec;
use tilewright_ir::element::NumberClass;
use tilewright_ir::ops::contract::{ConvolutionAttrs, DotAttrs};
use tilewright_ir::shape::checked_product;
use tilewright_ir::{Data, Dims, ElementType};

use super::elementwise::{Kernel, map1};
use super::matmul::{self, Product, Rows, Visitor};
use super::taps::{Taps, taps, walk_taps};
use super::{Cx, elementwise, unsupported};
use crate::algebra::Numbers;
use crate::algebra::function::ELEMENT;
use crate::error::{Fault, Outcome, WRONG_STORAGE};
use crate::jobs::{Job, run_all};
use crate::limits::Charge;
use crate::region::Part;
use crate::strides::{Level, Nest, collect, dim_numbers, extent, row_major};
use crate::value::{Array, Value};

pub(super) use super::ragged::ragged_dot;
pub(super) use super::scaled::scaled_dot;

/// Returns an operand in the type in which products are summed, its dims in the order in which
/// they are needed.
pub(super) fn arranged(
    cx: &Cx<'_, '_>,
    operand: &Array,
    to: ElementType,
    order: &[usize],
) -> Outcome<(Data, Charge)> {
    let charge = cx.scratch(to.bytes() as usize * 2, operand.len())?;
    cx.spend(operand.len())?;
    let strides = row_major(operand.dims());
    let levels = order.iter().map(|&dim| {
        let size = operand.dims().get(dim).copied().unwrap_or(0);
        Level { size: extent(size), strides: [strides.get(dim).copied().unwrap_or(0)] }
    });
    let nest = Nest::new(levels);
    let moved = if nest.is_contiguous() {
        Cow::Borrowed(operand.data())
    } else {
        Cow::Owned(collect(operand.data(), &nest, 0))
    };
    let mut converted = cx.evaluator.ledger.room(to, operand.len());
    sums_kernel(cx, operand.element_type(), to)?(&[&moved], operand.len(), &mut converted)?;
    if let Cow::Owned(moved) = moved {
        charge.keep(moved);
    }
    Ok((converted, charge))
}

/// Returns the type in which products of the first two types are summed for the third.
pub(super) fn sum_type(numbers: Numbers, types: [ElementType; 3]) -> Outcome<ElementType> {
    let kind = |element_type: ElementType| match element_type.class() {
        NumberClass::Bool => 0,
        NumberClass::Signed | NumberClass::Unsigned => 1,
        // A real result is the real part of the sums.
        NumberClass::Float | NumberClass::Complex => 2,
    };
    let [left, right, result] = types;
    if kind(result) < kind(left).max(kind(right)) {
        return Err(unsupported(format!(
            "nobody says what {result} sums of products of {left} and {right} are"
        )));
    }
    if numbers == Numbers::Field && result == ELEMENT {
        let of_field = left == ELEMENT && right == ELEMENT;
        let mixed = || unsupported("it multiplies floats and integers");
        return of_field.then_some(ElementType::U64).ok_or_else(mixed);
    }
    Ok(if types.iter().any(|t| t.is_complex()) {
        ElementType::C128
    } else if types.iter().any(|t| t.is_float()) {
        ElementType::F64
    } else {
        ElementType::S64
    })
}

/// Returns the kernel that converts to and from the type of sums; over a field, sums are the
/// bits of elements.
fn sums_kernel(cx: &Cx<'_, '_>, from: ElementType, to: ElementType) -> Outcome<Kernel> {
    match (cx.evaluator.numbers(), from, to) {
        (Numbers::Field, ELEMENT, ElementType::U64) => Ok(map1(f64::to_bits)),
        (Numbers::Field, ElementType::U64, ELEMENT) => Ok(map1(f64::from_bits)),
        _ => elementwise::convert_kernel(from, to),
    }
}

/// Sums as elements of the result's type.
pub(super) fn rounded(
    cx: &Cx<'_, '_>,
    sums: &Data,
    from: ElementType,
    to: ElementType,
) -> Outcome<Data> {
    let mut out = Data::zeros(to, 0);
    sums_kernel(cx, from, to)?(&[sums], sums.len(), &mut out)?;
    Ok(out)
}

pub(super) fn dot(cx: &mut Cx<'_, '_>, attrs: &DotAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    let (left, right) = (cx.array(0)?, cx.array(1)?);
    let result = cx.allocate_result()?;
    let sizes = DotSizes::new(left, right, attrs);
    cx.spend(sizes.products())?;
    let types = [left.element_type(), right.element_type(), result.element_type];
    let sum_type = sum_type(cx.evaluator.numbers(), types)?;
    let (x, of_x) = arranged(cx, left, sum_type, &sizes.left_order)?;
    let (y, of_y) = arranged(cx, right, sum_type, &sizes.right_order)?;
    let bytes = sum_type.bytes() as usize + result.element_type.bytes() as usize;
    let _sums = cx.scratch(bytes, sizes.sums_at_one_time().min(result.len))?;
    let out = cx.evaluator.ledger.recycled(result.element_type, result.len);
    let round = sums_kernel(cx, sum_type, result.element_type)?;
    let batches =
        Batches { x: &x, y: &y, sizes: &sizes, round, result_type: result.element_type, out };
    let data = matmul::visit(sum_type, batches)?;
    of_x.keep(x);
    of_y.keep(y);
    result.with(data)
}

/// A dot as products of matrices: `batches` times `rows x inner x columns`.
struct DotSizes {
    batches: usize,
    rows: usize,
    inner: usize,
    columns: usize,
    /// Batch, free, contracted.
    left_order: SmallVec<[usize; 6]>,
    /// Batch, contracted, free.
    right_order: SmallVec<[usize; 6]>,
}

impl DotSizes {
    fn new(left: &Array, right: &Array, attrs: &DotAttrs) -> Self {
        let left_batch = dim_numbers(&attrs.lhs_batch_dims);
        let left_inner = dim_numbers(&attrs.lhs_contracting_dims);
        let right_batch = dim_numbers(&attrs.rhs_batch_dims);
        let right_inner = dim_numbers(&attrs.rhs_contracting_dims);
        let free = |rank: usize, a: &[usize], b: &[usize]| -> SmallVec<[usize; 6]> {
            (0..rank).filter(|d| !a.contains(d) && !b.contains(d)).collect()
        };
        let left_free = free(left.rank(), &left_batch, &left_inner);
        let right_free = free(right.rank(), &right_batch, &right_inner);
        let count = |array: &Array, dims: &[usize]| {
            let sizes: Dims = dims.iter().filter_map(|&d| array.dims().get(d)).copied().collect();
            // Beside a 0, sizes may be too large to multiply; others fit.
            checked_product(&sizes).map_or(usize::MAX, extent)
        };
        Self {
            batches: count(left, &left_batch),
            rows: count(left, &left_free),
            inner: count(left, &left_inner),
            columns: count(right, &right_free),
            left_order: [left_batch, left_free, left_inner].into_iter().flatten().collect(),
            right_order: [right_batch, right_inner, right_free].into_iter().flatten().collect(),
        }
    }

    fn products(&self) -> usize {
        let sides = [self.batches, self.rows, self.inner, self.columns];
        sides.into_iter().fold(1, usize::saturating_mul)
    }

    /// Returns the rows of the result that are a task: those of a batch, or a few.
    fn rows_of_a_task(&self) -> usize {
        let whole = self.batches > 1 || self.products() < matmul::PRODUCTS_OF_A_THREAD;
        if whole { self.rows } else { self.rows.min(matmul::ROWS_OF_A_TASK) }
    }

    fn sums_at_one_time(&self) -> usize {
        let task = self.rows_of_a_task().saturating_mul(self.columns);
        task.saturating_mul(rayon::current_num_threads())
    }
}

struct Batches<'a> {
    x: &'a Data,
    y: &'a Data,
    sizes: &'a DotSizes,
    /// Makes elements of the result of sums.
    round: Kernel,
    result_type: ElementType,
    out: Data,
}

impl Visitor for Batches<'_> {
    fn visit<T: Product>(self) -> Outcome<Data> {
        let DotSizes { rows, inner, columns, .. } = *self.sizes;
        let (x, y) = (matmul::view::<T>(self.x)?, matmul::view::<T>(self.y)?);
        let (round, mut out) = (self.round, self.out);
        let task_rows = self.sizes.rows_of_a_task();
        // There is a result, so neither is 0.
        let (lanes, tasks_of_a_batch) = (task_rows * columns, rows.div_ceil(task_rows));
        let multiply = |task: usize, part: &mut Part<'_>, sums: &mut Data, rounded: &mut Data| {
            let (batch, first) = (task / tasks_of_a_batch, task % tasks_of_a_batch * task_rows);
            let count = task_rows.min(rows - first);
            let values = T::view_mut(sums).ok_or(WRONG_STORAGE)?;
            values.clear();
            values.resize(count * columns, T::ZERO);
            if inner > 0 {
                let (x, y) = (&x[(batch * rows + first) * inner..], &y[batch * inner * columns..]);
                let all = Rows { count, x_stride: inner, sum_stride: columns, y_stride: columns };
                T::add_product(x, y, values, all, inner, columns);
            }
            round(&[sums], count * columns, rounded)?;
            part.write(0, count * columns, rounded)
        };
        let storage = || (T::wrap(Vec::new()), Data::zeros(self.result_type, 0));
        each_part(Part::split(&mut out, lanes), &storage, &multiply)?;
        Ok(out)
    }
}

/// Computes a part of the result, with its number, by storage of sums and of rounded ones.
type Compute<'a> = dyn Fn(usize, &mut Part<'_>, &mut Data, &mut Data) -> Outcome<()> + Sync + 'a;

/// Computes parts at once; those of a thread use the same storage. It is compiled once for all types.
fn each_part(
    parts: Vec<Part<'_>>,
    storage: &(dyn Fn() -> (Data, Data) + Sync),
    compute: &Compute<'_>,
) -> Outcome<()> {
    let parts = parts.into_par_iter().enumerate();
    parts.try_for_each_init(storage, |(sums, rounded), (number, mut part)| {
        compute(number, &mut part, sums, rounded)
    })
}

/// For every tap of the window, the input's rows of features that it meets are
/// multiplied by the tap's matrix of features.
pub(super) fn convolution(cx: &mut Cx<'_, '_>, attrs: &ConvolutionAttrs) -> Outcome<Value> {
    if let Some(empty) = cx.empty_result()? {
        return Ok(empty);
    }
    if attrs.sparsity_config.is_some() {
        return Err(unsupported("its operands are sparse"));
    }
    let result = cx.allocate_result()?;
    let (input, kernel) = (cx.array(0)?, cx.array(1)?);
    if input.len() == 0 || kernel.len() == 0 {
        let sums = Data::zeros(result.element_type, result.len);
        return result.with(sums);
    }
    let (plan, _taps) = ConvPlan::new(cx, input, kernel, &result.dims, attrs)?;
    let types = [input.element_type(), kernel.element_type(), result.element_type];
    let sum_type = sum_type(cx.evaluator.numbers(), types)?;
    let (x, _x) = arranged(cx, input, sum_type, &plan.input_order)?;
    let (y, _y) = arranged(cx, kernel, sum_type, &plan.kernel_order)?;
    let _sums = cx.scratch(2 * sum_type.bytes() as usize, result.len)?;
    cx.spend(plan.products()?)?;
    let sums = matmul::visit(sum_type, Convolve { x: &x, y: &y, plan: &plan })?;
    // From batch, spatial, feature to the result's order.
    let strides = row_major(&plan.output_dims);
    let levels = plan
        .output_order
        .iter()
        .map(|&dim| Level { size: extent(plan.output_dims[dim]), strides: [strides[dim]] });
    let nest = Nest::new(levels);
    let data = rounded(cx, &sums, sum_type, result.element_type)?;
    drop(sums);
    result.with(if nest.is_contiguous() { data } else { collect(&data, &nest, 0) })
}

/// A convolution with its dims in one order: batch, spatial, feature for input
/// and output; spatial, input feature, output feature for the kernel.
struct ConvPlan {
    input_order: SmallVec<[usize; 6]>,
    kernel_order: SmallVec<[usize; 6]>,
    /// For each dim of the result, which of ours it is.
    output_order: SmallVec<[usize; 6]>,
    input_dims: SmallVec<[i64; 6]>,
    output_dims: SmallVec<[i64; 6]>,
    /// Input features that an output feature sees.
    inner: usize,
    feature_groups: usize,
    batch_groups: usize,
    taps: Vec<Taps>,
    window: SmallVec<[usize; 4]>,
}

impl ConvPlan {
    /// Returns the plan, and the memory it takes.
    fn new(
        cx: &Cx<'_, '_>,
        input: &Array,
        kernel: &Array,
        result: &[i64],
        attrs: &ConvolutionAttrs,
    ) -> Outcome<(Self, Vec<Charge>)> {
        let labels = &attrs.dim_labels;
        let order = |first: &[i64], middle: &[i64], last: &[i64]| -> SmallVec<[usize; 6]> {
            [first, middle, last].into_iter().flat_map(dim_numbers).collect()
        };
        let input_order =
            order(&[labels.input_batch], &labels.input_spatial, &[labels.input_feature]);
        let kernel_order = order(
            &labels.kernel_spatial,
            &[labels.kernel_input_feature],
            &[labels.kernel_output_feature],
        );
        let from_result =
            order(&[labels.output_batch], &labels.output_spatial, &[labels.output_feature]);
        let dims = |dims: &[i64], order: &[usize]| -> SmallVec<[i64; 6]> {
            order.iter().filter_map(|&d| dims.get(d).copied()).collect()
        };
        let input_dims = dims(input.dims(), &input_order);
        let output_dims = dims(result, &from_result);
        let mut output_order: SmallVec<[usize; 6]> = from_result.iter().map(|_| 0).collect();
        for (ours, &theirs) in from_result.iter().enumerate() {
            output_order[theirs] = ours;
        }
        let mut all_taps = Vec::new();
        let mut charges = Vec::new();
        for (i, window) in attrs.window.iter().enumerate() {
            let (taps, charge) = taps(cx, window, input_dims[i + 1], output_dims[i + 1])?;
            all_taps.push(taps);
            charges.push(charge);
        }
        let features = dim_numbers(&[labels.kernel_input_feature]);
        let inner = kernel.dims().get(features[0]).copied();
        let plan = Self {
            inner: extent(inner.ok_or(Fault::Internal("no such dim"))?),
            feature_groups: extent(attrs.feature_group_count),
            batch_groups: extent(attrs.batch_group_count),
            taps: all_taps,
            window: attrs.window.iter().map(|w| extent(w.size)).collect(),
            input_order,
            kernel_order,
            output_order,
            input_dims,
            output_dims,
        };
        Ok((plan, charges))
    }

    /// Returns the offset of the input that a group of output features reads.
    fn group_start(&self, group: usize, strides: &[isize]) -> isize {
        let group = group.cast_signed();
        if self.batch_groups > 1 {
            return group * self.output_dims[0] as isize * strides[0];
        }
        group * self.inner.cast_signed()
    }
}

struct Convolve<'a> {
    x: &'a Data,
    y: &'a Data,
    plan: &'a ConvPlan,
}

impl ConvPlan {
    /// Returns the products of all taps.
    fn products(&self) -> Outcome<usize> {
        let columns = self.output_dims.last().map_or(0, |&d| extent(d));
        let rows = extent(self.output_dims[0]).saturating_mul(self.inner).saturating_mul(columns);
        let mut products = 0usize;
        walk_taps(&self.taps, &mut |taps| {
            let positions = taps.iter().map(|tap| tap.count).product::<usize>();
            products = products.saturating_add(positions.saturating_mul(rows));
            Ok(())
        })?;
        Ok(products)
    }
}

impl Visitor for Convolve<'_> {
    fn visit<T: Product>(self) -> Outcome<Data> {
        let plan = self.plan;
        let (x, y) = (matmul::view::<T>(self.x)?, matmul::view::<T>(self.y)?);
        let total = plan.output_dims.iter().map(|&d| extent(d)).product();
        let mut sums = vec![T::ZERO; total];
        let batches = extent(plan.output_dims[0]);
        if total == 0 || plan.inner == 0 {
            return Ok(T::wrap(sums));
        }
        let from = row_major(&plan.input_dims)[0];
        let images = sums.chunks_mut(total / batches).enumerate();
        let job = |(image, sums): (usize, _)| -> Job<'_> {
            Box::new(move || convolve_image(plan, x, y, sums, from * image.cast_signed()))
        };
        run_all(images.map(job).collect())?;
        Ok(T::wrap(sums))
    }
}

/// Convolves one image, which begins at `image` in the input.
fn convolve_image<T: Product>(
    plan: &ConvPlan,
    x: &[T],
    y: &[T],
    sums: &mut [T],
    image: isize,
) -> Outcome<()> {
    let columns = plan.output_dims.last().map_or(0, |&d| extent(d));
    let groups = plan.feature_groups.max(plan.batch_groups).max(1);
    let group_columns = columns / groups;
    let (from, to) = (row_major(&plan.input_dims), row_major(&plan.output_dims));
    walk_taps(&plan.taps, &mut |taps| {
        let mut levels: SmallVec<[Level<2>; 6]> = SmallVec::new();
        let mut start = [0, image];
        let mut matrix = 0;
        for (dim, tap) in taps.iter().enumerate() {
            let (to, from) = (to[dim + 1], from[dim + 1]);
            levels.push(tap.level(to, from));
            start[0] += tap.output.cast_signed() * to;
            start[1] += tap.input.cast_signed() * from;
            matrix = matrix * plan.window[dim] + tap.number;
        }
        let nest = Nest::new(levels);
        let Level { size, strides: [sum_stride, x_stride] } = nest.inner();
        let [Ok(sum_stride), Ok(x_stride)] = [sum_stride, x_stride].map(usize::try_from) else {
            return Err(Fault::Internal("a window walks backwards"));
        };
        let rows = Rows { count: size, x_stride, sum_stride, y_stride: columns };
        for group in 0..groups {
            let column = group * group_columns;
            let shift = [column.cast_signed(), plan.group_start(group, &from)];
            let y = &y[matrix * plan.inner * columns + column..];
            for [to, from] in nest.positions([start[0] + shift[0], start[1] + shift[1]]) {
                let (sums, x) = (&mut sums[to.cast_unsigned()..], &x[from.cast_unsigned()..]);
                T::add_product(x, y, sums, rows, plan.inner, group_columns);
            }
        }
        Ok(())
    })
}
