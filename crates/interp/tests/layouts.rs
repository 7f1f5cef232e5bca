//! `bitcast` between layouts: elements where tiles put them, padding where the
//! layout says what it holds. Expected values by hand, from drawings of the
//! buffers.

use tilewright_interp::{Limits, evaluate};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal};

/// Returns a bitcast of `0, 1, 2 ...` from one shape to another.
fn bitcast(from: &str, to: &str) -> Result<Literal, String> {
    let text = format!(
        "HloModule m\nENTRY e {{\n  x = {from} parameter(0)\n  ROOT r = {to} bitcast(x)\n}}\n"
    );
    let module = tilewright_text::parse_and_verify(&text).unwrap();
    let parameter = module.computation(module.entry().unwrap()).parameters()[0];
    let shape = module.array_shape(parameter).unwrap();
    let count = shape.num_elements().unwrap();
    let data = match shape.element_type {
        ElementType::F32 => Data::F32((0..count).map(|i| i as f32).collect()),
        ElementType::U8 => Data::U8((0..count).map(|i| i as u8).collect()),
        ElementType::U16 => Data::U16((0..count).map(|i| i as u16).collect()),
        _ => Data::S32((0..count).map(|i| i as i32).collect()),
    };
    let dims = shape.dims().iter().copied();
    let input = ArrayLiteral::new(shape.element_type, dims, data).unwrap().into();
    evaluate(&module, &[input], &Limits::default()).map_err(|error| error.to_string())
}

fn numbers(from: &str, to: &str) -> Vec<i32> {
    let found = bitcast(from, to).unwrap();
    found.as_array().unwrap().as_slice::<i32>().unwrap().to_vec()
}

fn error(from: &str, to: &str) -> String {
    bitcast(from, to).unwrap_err()
}

#[test]
fn full_tiles_lie_one_after_the_other() {
    // [4,4] in tiles of [2,2].
    let tiles = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];
    assert_eq!(numbers("s32[4,4]{1,0:T(2,2)}", "s32[16]"), tiles);
    // And back: where each of the first came to lie.
    assert_eq!(numbers("s32[16]", "s32[4,4]{1,0:T(2,2)}"), tiles);
    // Tiles within tiles: each [2,2] is [1,2] pairs of rows, interleaved.
    let pairs = [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15];
    assert_eq!(numbers("s32[4,4]{1,0:T(2,2)(2,1)}", "s32[16]"), pairs);
    // The other order of dims.
    assert_eq!(numbers("s32[2,4]{0,1:T(2,2)}", "s32[8]"), [0, 4, 1, 5, 2, 6, 3, 7]);
}

#[test]
fn padding_holds_what_the_layout_says() {
    let rows = [0, 1, 2, -1, -1, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1];
    let of = |value: i32| rows.map(|v| if v < 0 { value } else { v });
    assert_eq!(numbers("s32[2,3]{1,0:P(3,5)}", "s32[15]"), of(0));
    assert_eq!(numbers("s32[2,3]{1,0:P(3,5)V(1)}", "s32[3,5]"), of(1));
    assert_eq!(numbers("s32[2,3]{1,0:P(3,5)V(lowest)}", "s32[15]"), of(i32::MIN));
    assert_eq!(numbers("s32[2,3]{1,0:P(3,5)V(highest)}", "s32[15]"), of(i32::MAX));
    let columns = numbers("s32[2,3]{0,1:P(3,4)V(1)}", "s32[12]");
    assert_eq!(columns, [0, 3, 1, 1, 4, 1, 2, 5, 1, 1, 1, 1]);
    // A part of it.
    let narrow = numbers("s32[2,3]{1,0:P(3,5)V(1)}", "s32[3,4]{1,0:P(3,5)V(unknown)}");
    assert_eq!(narrow, [0, 1, 2, 1, 3, 4, 5, 1, 1, 1, 1, 1]);
    let float = bitcast("f32[3]{0:P(5)V(-inf)}", "f32[5]").unwrap();
    let expected = [0.0, 1.0, 2.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
    assert_eq!(float.as_array().unwrap().as_slice::<f32>(), Some(&expected[..]));
    // Padded, then in tiles: [2,3] to [2,4] in tiles of [2,2].
    let tiled = numbers("s32[2,3]{1,0:T(2,2)P(2,4)V(1)}", "s32[8]");
    assert_eq!(tiled, [0, 1, 3, 4, 2, 1, 5, 1]);
}

#[test]
fn padding_is_bytes_of_another_type() {
    let bytes = bitcast("u16[3]{0:P(4)V(1)}", "u8[8]").unwrap();
    assert_eq!(bytes.as_array().unwrap().as_slice::<u8>(), Some(&[0, 0, 1, 0, 2, 0, 1, 0][..]));
    // 0 1 | 2, a 0 of padding: 256 and 2.
    let wide = bitcast("u8[3]{0:P(4)}", "u16[2]").unwrap();
    assert_eq!(wide.as_array().unwrap().as_slice::<u16>(), Some(&[0x0100, 0x0002][..]));
}

#[test]
fn undefined_padding_is_not_read() {
    let full = error("s32[5]{0:T(4)}", "s32[8]");
    assert!(full.contains("`r`") && full.contains("element 5 of s32[8]"), "{full}");
    assert!(full.contains("lies in padding of s32[5]{0:T(4)}, whose value is undefined"), "{full}");
    assert_eq!(numbers("s32[5]{0:T(4)}", "s32[5]"), [0, 1, 2, 3, 4]);
    assert!(error("s32[5]{0:L(8)}", "s32[8]").contains("element 5"));
    assert!(error("s32[2,3]{1,0:P(3,5)V(unknown)}", "s32[15]").contains("element 3"));
    assert!(error("s32[3]{0:T(4)P(5)V(1)}", "s32[8]").contains("element 5"));
    // One byte of an element is enough.
    assert!(error("u8[3]{0:T(4)}", "u16[2]").contains("element 1 of u16[2]"));
    assert!(error("s32[5]{0:T(4)}", "s32[9]").contains("a larger buffer than"));
    let float = error("f32[3]{0:P(4)V(lowest)}", "f32[4]");
    assert!(float.contains("padding of f32 that is `lowest`"), "{float}");
    assert!(error("s32[3]{0:P(4)V(inf)}", "s32[4]").contains("padding of s32 that is `inf`"));
}

/// Who reads the result trusts its layout.
#[test]
fn padding_is_not_claimed_where_it_is_not() {
    let zeros = "s32[2,2]{1,0:P(2,3)}";
    let wrong = error("s32[2,3]", zeros);
    assert!(wrong.contains("the padding of s32[2,2]{1,0:P(2,3)} would not be 0"), "{wrong}");
    assert_eq!(numbers("s32[2,2]{1,0:P(2,3)V(0)}", "s32[1,2]{1,0:P(1,3)}"), [0, 1]);
    assert!(
        error("s32[2,2]{1,0:P(2,3)V(1)}", zeros.replace("2,2]", "1,2]").as_str())
            .contains("would not be 0")
    );
    assert!(error("s32[2]{0:T(4)}", "s32[2]{0:P(3)}").contains("would not be 0"));
    assert_eq!(numbers("s32[2,3]", "s32[2,2]{1,0:P(2,3)V(unknown)}"), [0, 1, 3, 4]);
}
