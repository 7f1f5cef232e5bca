//! Reductions by the crate `ndarray`, along one axis after the other.

use std::hint::black_box;

use half::bf16;
use ndarray::{ArrayD, ArrayViewD, Axis, Ix1, Ix2, Ix3, Ix4, Ix5, IxDyn, RemoveAxis, Zip};
use tilewright_native::Number;

/// Numbers that are reduced.
pub(crate) trait Value: Number {
    /// The element at a place in memory.
    fn at(place: usize) -> Self;
    /// Finds sums, or the greatest numbers, along the axes in this order, if `ndarray` can.
    fn by_ndarray(view: &ArrayViewD<'_, Self>, axes: &[usize], greatest: bool) -> Option<()>;
}

impl Value for bf16 {
    fn at(place: usize) -> Self {
        Self::from_f32(f32::at(place))
    }

    fn by_ndarray(_: &ArrayViewD<'_, Self>, _: &[usize], _: bool) -> Option<()> {
        None
    }
}

/// The greater of two numbers, in one instruction.
fn greater<T: PartialOrd + Copy>(a: &T, b: &T) -> T {
    if b > a { *b } else { *a }
}

macro_rules! values {
    ($($type:ty)*) => { $(
        impl Value for $type {
            fn at(place: usize) -> Self {
                ((place % 1009) as i32 - 504) as Self
            }

            fn by_ndarray(view: &ArrayViewD<'_, Self>, axes: &[usize], greatest: bool) -> Option<()> {
                fn along<D: RemoveAxis>(
                    view: ArrayViewD<'_, $type>,
                    axis: Axis,
                    greatest: bool,
                ) -> Option<ArrayD<$type>> {
                    let view = view.into_dimensionality::<D>().ok()?;
                    let result = if !greatest {
                        view.sum_axis(axis)
                    } else if view.strides().iter().min() == Some(&view.strides()[axis.0]) {
                        // As sums are found: lane by lane where elements lie close.
                        let lane = |lane: ndarray::ArrayView1<'_, $type>| {
                            lane.fold(<$type>::LEAST, |a, b| greater(&a, b))
                        };
                        Zip::from(view.lanes(axis)).map_collect(lane)
                    } else {
                        view.fold_axis(axis, <$type>::LEAST, greater)
                    };
                    Some(result.into_dyn())
                }

                if axes.len() == view.ndim() {
                    let all = if greatest {
                        view.fold(Self::LEAST, |a, b| greater(&a, b))
                    } else {
                        view.sum()
                    };
                    black_box(all);
                    return Some(());
                }
                let mut result: Option<ArrayD<Self>> = None;
                for (at, &axis) in axes.iter().enumerate() {
                    // Axes move down where others before them are gone.
                    let gone = axes[..at].iter().filter(|&&gone| gone < axis).count();
                    let axis = Axis(axis - gone);
                    let view = result.as_ref().map_or(view.view(), |result| result.view());
                    // Loops over a rank that is known are faster.
                    let next = match view.ndim() {
                        1 => along::<Ix1>(view, axis, greatest),
                        2 => along::<Ix2>(view, axis, greatest),
                        3 => along::<Ix3>(view, axis, greatest),
                        4 => along::<Ix4>(view, axis, greatest),
                        5 => along::<Ix5>(view, axis, greatest),
                        _ => along::<IxDyn>(view, axis, greatest),
                    };
                    result = Some(next?);
                }
                black_box(result).map(drop)
            }
        }
    )* };
}

values!(f32 f64 i32);
