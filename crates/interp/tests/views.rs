//! Parts of arrays, against NumPy and the definitions.

use tilewright_interp::views::{View, ViewError};
use tilewright_ir::{ArrayLiteral, Data, ElementType};

/// `0, 1, 2 ...` in these dims.
fn counted(dims: &[i64]) -> ArrayLiteral {
    let count = i32::try_from(dims.iter().product::<i64>()).unwrap();
    let data = Data::S32((0..count).collect());
    ArrayLiteral::new(ElementType::S32, dims.iter().copied(), data).unwrap()
}

fn elements(view: &View<'_>) -> Vec<i32> {
    let walked: Vec<i32> = view.iter().unwrap().copied().collect();
    let copied = view.to_array().unwrap();
    assert_eq!(copied.as_slice(), Some(&walked[..]), "both ways read the same");
    assert_eq!(copied.dims(), &*view.dims());
    assert_eq!(view.len(), walked.len());
    walked
}

#[test]
fn elements_lie_where_strides_say() {
    // The worked example: strides of (2,3,4,5) are (60,20,5,1), so [1,2,1,3] is
    // the element 1*60 + 2*20 + 1*5 + 3.
    let x = counted(&[2, 3, 4, 5]);
    let mut view = View::of(&x);
    for at in [1, 2, 1, 3] {
        view = view.index(0, at).unwrap();
    }
    assert_eq!((view.rank(), elements(&view)), (0, vec![108]));
}

#[test]
fn diagonals_are_as_numpy_takes_them() {
    let x = counted(&[3, 4]);
    let x = View::of(&x);
    let diagonal = |offset, dim1, dim2| elements(&x.diagonal(offset, dim1, dim2).unwrap());
    // numpy.arange(12).reshape(3, 4).diagonal(offset, axis1, axis2)
    assert_eq!(diagonal(0, 0, 1), [0, 5, 10]);
    assert_eq!(diagonal(1, 0, 1), [1, 6, 11]);
    assert_eq!(diagonal(3, 0, 1), [3]);
    assert_eq!(diagonal(-1, 0, 1), [4, 9]);
    assert_eq!(diagonal(-1, 1, 0), [1, 6, 11]);
    assert!(diagonal(4, 0, 1).is_empty());
    assert!(diagonal(-3, 0, 1).is_empty());
    assert!(diagonal(isize::MIN, 0, 1).is_empty());
    let y = counted(&[2, 3, 2, 3]);
    let y = View::of(&y);
    // numpy.arange(36).reshape(2, 3, 2, 3).diagonal(-1, 3, 0)
    let found = y.diagonal(-1, 3, 0).unwrap();
    assert_eq!(found.dims().as_slice(), [3, 2, 2]);
    assert_eq!(elements(&found), [1, 20, 4, 23, 7, 26, 10, 29, 13, 32, 16, 35]);
    // numpy.arange(36).reshape(2, 3, 2, 3).diagonal(1, 1, 3)
    let found = y.diagonal(1, 1, 3).unwrap();
    assert_eq!(found.dims().as_slice(), [2, 2, 2]);
    assert_eq!(elements(&found), [1, 8, 4, 11, 19, 26, 22, 29]);
}

#[test]
fn strips_run_along_a_dim() {
    let x = counted(&[2, 3, 2]);
    let x = View::of(&x);
    let strips = |dim| -> Vec<Vec<i32>> { x.strips(dim).unwrap().map(|s| elements(&s)).collect() };
    assert_eq!(strips(2), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]);
    assert_eq!(strips(1), [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]);
    assert_eq!(strips(0), [[0, 6], [1, 7], [2, 8], [3, 9], [4, 10], [5, 11]]);
}

#[test]
fn sub_tensors_and_blocks_cover_an_array() {
    let x = counted(&[2, 3]);
    let x = View::of(&x);
    let parts: Vec<Vec<i32>> = x.sub_tensors(1).unwrap().map(|part| elements(&part)).collect();
    assert_eq!(parts, [[0, 3], [1, 4], [2, 5]]);
    let y = counted(&[3, 5]);
    let blocks: Vec<Vec<i32>> =
        View::of(&y).blocks(&[2, 3]).unwrap().map(|block| elements(&block)).collect();
    assert_eq!(blocks, [vec![0, 1, 2, 5, 6, 7], vec![3, 4, 8, 9], vec![10, 11, 12], vec![13, 14]]);
}

#[test]
fn parts_have_parts() {
    let x = counted(&[4, 6]);
    let x = View::of(&x).slice(1, 1, 6, 2).unwrap().slice(0, 1, 4, 1).unwrap();
    assert_eq!(elements(&x), [7, 9, 11, 13, 15, 17, 19, 21, 23]);
    assert_eq!(elements(&x.transposed(&[1, 0]).unwrap()), [7, 13, 19, 9, 15, 21, 11, 17, 23]);
    assert_eq!(elements(&x.diagonal(0, 1, 0).unwrap()), [7, 15, 23]);
    let nothing = x.slice(0, 3, 3, 1).unwrap();
    assert!(nothing.is_empty() && elements(&nothing).is_empty());
    assert_eq!(nothing.strips(1).unwrap().count(), 0);
    assert_eq!(nothing.strips(0).unwrap().map(|strip| strip.len()).sum::<usize>(), 0);
    assert_eq!(nothing.blocks(&[2, 2]).unwrap().count(), 0);
}

#[test]
fn what_is_no_part_is_an_error() {
    let x = counted(&[2, 3]);
    let view = View::of(&x);
    let missing = Some(ViewError::NoSuchDim { dim: 2, rank: 2 });
    assert_eq!(view.diagonal(0, 0, 2).err(), missing);
    assert_eq!(view.strips(2).err(), missing);
    assert_eq!(view.sub_tensors(2).err(), missing);
    assert_eq!(view.diagonal(0, 1, 1).err(), Some(ViewError::SameDim { dim: 1 }));
    let beyond = ViewError::OutOfRange { dim: 1, start: 3, end: 4, size: 3 };
    assert_eq!(view.index(1, 3).err(), Some(beyond));
    assert_eq!(view.slice(1, 0, 2, 0).err(), Some(ViewError::Zero { dim: 1 }));
    assert_eq!(view.blocks(&[1, 0]).err(), Some(ViewError::Zero { dim: 1 }));
    assert_eq!(view.blocks(&[1]).err(), Some(ViewError::Rank { given: 1, rank: 2 }));
    assert_eq!(view.transposed(&[1, 1]).err(), Some(ViewError::Twice { dim: 1 }));
    assert_eq!(view.iter::<f32>().err(), Some(ViewError::Type(ElementType::S32)));
    let message = view.index(1, usize::MAX).err().map(|error| error.to_string());
    assert!(message.unwrap().contains("of dim 1, which has 3"));
}
