//! The values of constants.

use smallvec::SmallVec;
use tilewright_ir::{ArrayLiteral, Data, Literal};

use super::float::{push_bf16, push_f16, push_f32, push_f64, push_small};
use super::number::{push_i64, push_u64};
use tilewright_ir::small_float::Format;

/// XLA leaves out the values of arrays with more elements.
const LARGE: usize = 10;

/// The most braces of an array without elements. `{...}` is read as any empty array, here and
/// by XLA, and `f32[1000000000,0]` should not fill the memory.
const MOST_EMPTY_ROWS: i64 = 64;

/// A literal holds a token, for which text has no word.
pub(super) struct HoldsToken;

/// Appends a literal as it stands between the parentheses of `constant`.
pub(super) fn push(out: &mut String, literal: &Literal, elide: bool) -> Result<(), HoldsToken> {
    if elide && is_large(literal) {
        out.push_str("{...}");
        return Ok(());
    }
    match literal {
        Literal::Array(array) if empty_rows(array.dims()) > MOST_EMPTY_ROWS => {
            out.push_str("{...}");
        }
        Literal::Array(array) => push_array(out, array),
        Literal::Tuple(elements) => {
            out.push_str("( ");
            for (i, element) in elements.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push(out, element, elide)?;
            }
            out.push_str(" )");
        }
        Literal::Elided(_) => out.push_str("{...}"),
        Literal::Token => return Err(HoldsToken),
    }
    Ok(())
}

fn is_large(literal: &Literal) -> bool {
    match literal {
        Literal::Array(array) => array.len() > LARGE,
        // Their elements are elided one by one: `({...})` can be read back.
        Literal::Tuple(_) | Literal::Elided(_) | Literal::Token => false,
    }
}

/// Returns the number of brace pairs that enclose nothing; 0 if there are elements.
fn empty_rows(dims: &[i64]) -> i64 {
    match dims.iter().position(|&size| size == 0) {
        Some(empty) => dims[..empty].iter().fold(1, |rows, &size| rows.saturating_mul(size)),
        None => 0,
    }
}

fn push_array(out: &mut String, array: &ArrayLiteral) {
    let dims = array.dims();
    match array.data() {
        Data::Pred(v) if dims.is_empty() => {
            nest(out, dims, |out, i| out.push_str(if v[i] { "true" } else { "false" }));
        }
        Data::Pred(v) => nest(out, dims, |out, i| out.push(if v[i] { '1' } else { '0' })),
        Data::S8(v) => nest(out, dims, |out, i| push_i64(out, v[i].into())),
        Data::S16(v) => nest(out, dims, |out, i| push_i64(out, v[i].into())),
        Data::S32(v) => nest(out, dims, |out, i| push_i64(out, v[i].into())),
        Data::S64(v) => nest(out, dims, |out, i| push_i64(out, v[i])),
        Data::U8(v) => match Format::of(array.element_type()) {
            Some(format) => nest(out, dims, |out, i| push_small(out, format, v[i])),
            None => nest(out, dims, |out, i| push_u64(out, v[i].into())),
        },
        Data::U16(v) => nest(out, dims, |out, i| push_u64(out, v[i].into())),
        Data::U32(v) => nest(out, dims, |out, i| push_u64(out, v[i].into())),
        Data::U64(v) => nest(out, dims, |out, i| push_u64(out, v[i])),
        Data::F16(v) => nest(out, dims, |out, i| push_f16(out, v[i].to_bits())),
        Data::BF16(v) => nest(out, dims, |out, i| push_bf16(out, v[i].to_bits())),
        Data::F32(v) => nest(out, dims, |out, i| push_f32(out, v[i])),
        Data::F64(v) => nest(out, dims, |out, i| push_f64(out, v[i])),
        Data::C64(v) => nest(out, dims, |out, i| pair(out, v[i].re, v[i].im, push_f32)),
        Data::C128(v) => nest(out, dims, |out, i| pair(out, v[i].re, v[i].im, push_f64)),
    }
}

/// Writes a complex number. XLA's parser gives the imaginary part the NaN of the real part for
/// any text; no spelling avoids that.
fn pair<T>(out: &mut String, re: T, im: T, push: impl Fn(&mut String, T)) {
    out.push('(');
    push(out, re);
    out.push_str(", ");
    push(out, im);
    out.push(')');
}

/// Writes nested braces, one level for each dim, with XLA's spaces and comments. `element`
/// writes the element of a row-major position.
fn nest(out: &mut String, dims: &[i64], mut element: impl FnMut(&mut String, usize)) {
    let Some((&row, outer)) = dims.split_last() else {
        element(out, 0);
        return;
    };
    let row = usize::try_from(row).unwrap_or(0);
    if outer.is_empty() {
        push_row(out, row, 0, &mut element, ("{", "}"));
        return;
    }
    let spaces = if row > 1 { ("{ ", " }") } else { ("{", "}") };
    let mut position = 0;
    // The number of the next child on each open level.
    let mut open: SmallVec<[i64; 6]> = SmallVec::new();
    open.push(0);
    out.push_str("{ ");
    while let Some(&child) = open.last() {
        let level = open.len() - 1;
        if child == outer[level] {
            open.pop();
            out.push_str(" }");
        } else {
            if child > 0 {
                out.push_str(", ");
            }
            open[level] += 1;
            if open.len() == outer.len() {
                push_row(out, row, position, &mut element, spaces);
                position += row;
            } else {
                open_child(out, level, child, outer);
                open.push(0);
            }
        }
    }
}

/// Opens a child that is no row; from four dims on XLA writes its number.
fn open_child(out: &mut String, level: usize, child: i64, outer: &[i64]) {
    out.push_str("{ ");
    if outer.len() >= 3 {
        out.push_str("/*i");
        push_u64(out, level as u64);
        out.push('=');
        push_i64(out, child);
        out.push_str("*/");
        if outer[level + 1] > 0 {
            out.push(' ');
        }
    }
}

fn push_row(
    out: &mut String,
    len: usize,
    first: usize,
    element: &mut impl FnMut(&mut String, usize),
    (open, close): (&str, &str),
) {
    out.push_str(open);
    for i in 0..len {
        if i > 0 {
            out.push_str(", ");
        }
        element(out, first + i);
    }
    out.push_str(close);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::ElementType;

    fn text(literal: &Literal) -> String {
        let mut out = String::new();
        assert!(push(&mut out, literal, false).is_ok());
        out
    }

    fn count(dims: &[i64]) -> Literal {
        let len = if dims.contains(&0) { 0 } else { dims.iter().product::<i64>() };
        let len = i16::try_from(len).unwrap();
        let data = Data::F32((1..=len).map(f32::from).collect());
        ArrayLiteral::new(ElementType::F32, dims.iter().copied(), data).unwrap().into()
    }

    /// The right-hand sides were printed by XLA.
    #[test]
    fn arrays_are_nested_as_xla_nests_them() {
        assert_eq!(text(&count(&[])), "1");
        assert_eq!(text(&count(&[0])), "{}");
        assert_eq!(text(&count(&[2])), "{1, 2}");
        assert_eq!(text(&count(&[0, 2])), "{  }");
        assert_eq!(text(&count(&[2, 0])), "{ {}, {} }");
        assert_eq!(text(&count(&[2, 0, 3])), "{ {  }, {  } }");
        assert_eq!(text(&count(&[1, 1])), "{ {1} }");
        assert_eq!(text(&count(&[2, 3])), "{ { 1, 2, 3 }, { 4, 5, 6 } }");
        assert_eq!(text(&count(&[2, 2, 1])), "{ { {1}, {2} }, { {3}, {4} } }");
        assert_eq!(
            text(&count(&[1, 2, 2, 2])),
            "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 }, { 3, 4 } }, { /*i1=1*/ { 5, 6 }, { 7, 8 } } } }"
        );
        assert_eq!(
            text(&count(&[2, 1, 1, 2, 1])),
            "{ { /*i0=0*/ { /*i1=0*/ { /*i2=0*/ {1}, {2} } } }, \
             { /*i0=1*/ { /*i1=0*/ { /*i2=0*/ {3}, {4} } } } }"
        );
        assert_eq!(text(&count(&[1, 1, 1, 0, 2])), "{ { /*i0=0*/ { /*i1=0*/ { /*i2=0*/ } } } }");
    }

    #[test]
    fn empty_arrays_stay_short() {
        assert_eq!(text(&count(&[1 << 40, 1 << 40, 0, 5])), "{...}");
        assert_eq!(text(&count(&[0, 1 << 40])), "{  }");
    }

    #[test]
    fn tuples_and_truth_values() {
        let pred = Literal::scalar(ElementType::Pred, true).unwrap();
        let preds = ArrayLiteral::new(ElementType::Pred, [2, 1], Data::Pred(vec![true, false]));
        let preds = Literal::Array(preds.unwrap());
        assert_eq!(text(&preds), "{ {1}, {0} }");
        let inner = Literal::Tuple(vec![count(&[2]), pred]);
        let outer = Literal::Tuple(vec![count(&[]), inner]);
        assert_eq!(text(&outer), "( 1, ( {1, 2}, true ) )");
        assert_eq!(text(&Literal::Tuple(Vec::new())), "(  )");
    }
}
