//! Arrays of the crate `ndarray`.

use ndarray::{Array3, ArrayView3, Axis, s};
use tilewright_native::{Fold, Serial, View, reduce};

/// Sums of a view that is transposed, reversed and skips elements, as `ndarray` adds them.
#[test]
fn views_of_any_strides() {
    let array = Array3::from_shape_fn((4, 6, 5), |(i, j, k)| (100 * i + 10 * j + k) as i32);
    let view: ArrayView3<'_, i32> = array.slice(s![..;-1, 1..;2, ..]);
    let view = view.permuted_axes([2, 0, 1]);
    for axis in 0..3 {
        let sums = reduce(&View::from(view), &[axis], Fold::Sum, &Serial).expect("sums");
        let expected = view.sum_axis(Axis(axis as usize));
        assert_eq!(sums.dims, expected.shape());
        assert_eq!(sums.data, expected.iter().copied().collect::<Vec<_>>());
    }
}

/// No element is read of an empty array.
#[test]
fn empty_views() {
    let array = Array3::<i32>::zeros((2, 0, 3));
    let sums = reduce(&View::from(array.view()), &[1], Fold::Sum, &Serial).expect("zeros");
    assert_eq!(sums.data, [0; 6]);
}
