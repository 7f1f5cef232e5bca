//! Reading, writing and making of inputs; comparing results.

use std::io::{Cursor, Write};

use half::bf16;
use tilewright_interp::{
    InputError, InputKind, Limits, RandomInputs, Tolerance, compare, inputs_for, npz,
};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Native, Shape};

fn array<T: Native>(element_type: ElementType, dims: &[i64], values: Vec<T>) -> Literal {
    let array = ArrayLiteral::new(element_type, dims.iter().copied(), T::wrap(values));
    Literal::Array(array.unwrap())
}

fn round_trip(values: &[Literal]) -> Vec<Literal> {
    let mut file = Cursor::new(Vec::new());
    npz::write(&mut file, &[("in", values)]).unwrap();
    let shapes: Vec<Shape> = values.iter().map(Literal::shape).collect();
    npz::read(file, "in", &shapes.iter().collect::<Vec<_>>()).unwrap()
}

#[test]
fn every_type_survives_a_file() {
    let mut values = Vec::new();
    for &element_type in ElementType::ALL {
        let data = Data::zeros(element_type, 6);
        values.push(ArrayLiteral::new(element_type, [2, 3], data).unwrap().into());
    }
    values.push(array(ElementType::F32, &[], vec![-0.0f32]));
    values.push(array(ElementType::F32, &[0, 3], Vec::<f32>::new()));
    values.push(array(ElementType::BF16, &[2], vec![bf16::NAN, bf16::from_f32(1.5)]));
    values.push(array(ElementType::S4, &[2], vec![-8i8, 7]));
    values.push(Literal::Tuple(vec![
        array(ElementType::S64, &[2], vec![i64::MIN, i64::MAX]),
        Literal::Token,
        Literal::Tuple(vec![array(ElementType::Pred, &[2], vec![true, false])]),
    ]));
    assert_eq!(round_trip(&values), values);
}

/// Returns an uncompressed archive with one file of these bytes.
fn zip_of(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(bytes).unwrap();
    zip.finish().unwrap().into_inner()
}

fn npy(header: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(elements);
    bytes
}

fn read_one(npy: &[u8], shape: &Shape) -> Result<Literal, String> {
    let file = Cursor::new(zip_of("in0.npy", npy));
    let read = npz::read(file, "in", &[shape]).map_err(|e| e.to_string());
    read.map(|mut values| values.remove(0))
}

#[test]
fn column_major_and_big_endian_arrays_are_read() {
    let shape = Shape::array(ElementType::S16, [2, 3]);
    let elements: Vec<u8> = [1i16, 4, 2, 5, 3, 6].iter().flat_map(|v| v.to_be_bytes()).collect();
    let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
    let expected = array(ElementType::S16, &[2, 3], vec![1i16, 2, 3, 4, 5, 6]);
    assert_eq!(read_one(&npy(header, &elements), &shape), Ok(expected));
}

/// 2^62 twice: a product that 64 bits cannot hold, beside a 0.
#[test]
fn arrays_without_elements_may_have_any_sizes() {
    const HUGE: i64 = 1 << 62;
    for order in ["True", "False"] {
        let header =
            format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': ({HUGE}, {HUGE}, 0), }}");
        let shape = Shape::array(ElementType::F32, [HUGE, HUGE, 0]);
        let expected = array(ElementType::F32, &[HUGE, HUGE, 0], Vec::<f32>::new());
        assert_eq!(read_one(&npy(&header, &[]), &shape), Ok(expected), "{order}");
    }
}

#[test]
fn hostile_files_are_errors() {
    let shape = Shape::array(ElementType::F32, [2]);
    let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    assert!(read_one(&npy(good, &[0; 8]), &shape).is_ok());
    let cases: &[(&str, &[u8], &str)] = &[
        (good, &[0; 7], "take 7 bytes, not 8"),
        (good, &[0; 9], "take 9 bytes, not 8"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", &[0; 8], "its type is `f8`"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", &[0; 8], "its dims are [3]"),
        (
            "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }",
            &[0; 8],
            "its dims are",
        ),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", &[0; 8], "size"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", &[0; 8], "record"),
        ("{'descr': '<f4', 'shape': (2,), }", &[0; 8], "missing"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", &[0; 8], "dictionary"),
        ("((((((((((((((", &[0; 8], "dictionary"),
    ];
    for (header, elements, message) in cases {
        let error = read_one(&npy(header, elements), &shape).unwrap_err();
        assert!(error.contains(message), "{header}: {error}");
    }
    let mut long = npy(good, &[]);
    long.splice(6..10, [2, 0, 255, 255, 255, 255]);
    assert!(read_one(&long, &shape).unwrap_err().contains("too long"));
    assert!(read_one(b"not an array", &shape).is_err());
    assert!(npz::read(Cursor::new(b"not a zip".to_vec()), "in", &[&shape]).is_err());
    let two = [&shape, &shape];
    let file = Cursor::new(zip_of("in0.npy", &npy(good, &[0; 8])));
    let error = npz::read(file, "in", &two).unwrap_err().to_string();
    assert_eq!(error, "2 arrays `in0`, `in1` ... are wanted, but the file has 1");
    let narrow = Shape::array(ElementType::U4, [2]);
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
    assert!(read_one(&npy(header, &[15, 16]), &narrow).unwrap_err().contains("out of the range"));
}

#[test]
fn inputs_depend_on_seed_and_kind_alone() {
    let text = "HloModule m
ENTRY e {
  a = f32[50] parameter(0)
  b = (s8[9], bf16[7]) parameter(1)
  ROOT t = (f32[50], (s8[9], bf16[7])) tuple(a, b)
}";
    let module = tilewright_text::parse_and_verify(text).map_err(|e| format!("{e:?}")).unwrap();
    for &kind in InputKind::ALL {
        let first = inputs_for(&module, 7, kind).unwrap();
        assert_eq!(first, inputs_for(&module, 7, kind).unwrap(), "{}", kind.name());
        assert_ne!(first, inputs_for(&module, 8, kind).unwrap(), "{}", kind.name());
        let values = first[0].as_array().unwrap().as_slice::<f32>().unwrap();
        let finite = values.iter().all(|v| v.is_finite());
        assert_eq!(finite, kind != InputKind::NonFinite, "{}", kind.name());
    }
    // The stream is ChaCha8's: the same on every machine and in every version. Its
    // first two numbers from 0 to 1 for this seed are 0.40248566 and 0.08038372, of which Box and
    // Muller's method makes one.
    let first = inputs_for(&module, 1, InputKind::Normal).unwrap();
    let values = first[0].as_array().unwrap().as_slice::<f32>().unwrap();
    assert!((values[0] - FIRST_NORMAL).abs() < 1e-6, "{}", values[0]);
}

const FIRST_NORMAL: f32 = 1.1806941;

#[test]
fn comparisons_tell_where_and_how_far() {
    let expected = array(ElementType::F32, &[2, 2], vec![100.0f32, f32::NAN, f32::INFINITY, 0.0]);
    let close = array(ElementType::F32, &[2, 2], vec![100.001f32, f32::NAN, f32::INFINITY, -0.0]);
    let result = compare(&expected, &close, Tolerance::of).unwrap();
    assert!(result[0].equal && result[0].at.is_none());
    assert!(result[0].max_abs > 9e-4 && result[0].max_ulp > 100);

    let far = array(ElementType::F32, &[2, 2], vec![100.0f32, f32::NAN, 3.0, 0.5]);
    let result = compare(&expected, &far, Tolerance::of).unwrap();
    let at = result[0].at.clone().unwrap();
    assert!(!result[0].equal);
    assert_eq!(at.index.as_slice(), [1, 0]);
    assert_eq!((at.expected.as_str(), at.actual.as_str()), ("inf", "3.0"));
    assert_eq!(result[0].max_abs, f64::INFINITY);

    let signed = Tolerance { signed_zeros: true, ..Tolerance::EXACT };
    let zero = array(ElementType::F32, &[1], vec![0.0f32]);
    let minus = array(ElementType::F32, &[1], vec![-0.0f32]);
    assert!(compare(&zero, &minus, |_| Tolerance::EXACT).unwrap()[0].equal);
    assert!(!compare(&zero, &minus, |_| signed).unwrap()[0].equal);

    let tuple = Literal::Tuple(vec![zero.clone(), array(ElementType::S32, &[1], vec![5i32])]);
    let other = Literal::Tuple(vec![zero.clone(), array(ElementType::S32, &[1], vec![7i32])]);
    let result = compare(&tuple, &other, Tolerance::of).unwrap();
    assert!(result[0].equal && !result[1].equal);
    assert_eq!((result[1].index, result[1].max_abs, result[1].max_ulp), (1, 2.0, 2));
    assert!(compare(&zero, &expected, Tolerance::of).is_err());
    assert!(compare(&zero, &tuple, Tolerance::of).is_err());
}

fn file_of(arrays: &[Literal]) -> Cursor<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    npz::write(&mut bytes, &[("in", arrays)]).unwrap();
    Cursor::new(bytes.into_inner())
}

#[test]
fn rows_are_split_among_devices() {
    let rows = array(ElementType::S32, &[2, 3], vec![1i32, 2, 3, 4, 5, 6]);
    let same = array(ElementType::BF16, &[1], vec![bf16::ONE]);
    let shapes = [&Shape::array(ElementType::S32, [3]), &Shape::array(ElementType::BF16, [1])];
    let read = |arrays: &[Literal], devices| {
        npz::read_rows(file_of(arrays), "in", &shapes, devices).map_err(|e| e.to_string())
    };
    let row = |values: [i32; 3]| array(ElementType::S32, &[3], values.to_vec());
    let both = [row([1, 2, 3]), same.clone()];
    let expected = vec![both.to_vec(), vec![row([4, 5, 6]), same.clone()]];
    assert_eq!(read(&[rows.clone(), same.clone()], 2), Ok(expected));
    // One list will do where nothing differs; a single device has no rows.
    assert_eq!(read(&both, 2), Ok(vec![both.to_vec()]));
    assert_eq!(read(&both, 1), Ok(vec![both.to_vec()]));
    assert!(read(&[rows.clone(), same.clone()], 1).unwrap_err().contains("[2, 3]"));
    assert!(read(&[rows.clone(), same], 3).unwrap_err().contains("a first dim of 3 before it"));
    assert!(read(&[rows], 2).unwrap_err().contains("2 arrays"));
}

#[test]
fn a_tuple_has_rows_or_none() {
    let element = Shape::array(ElementType::S32, [1]);
    let shape = Shape::Tuple(vec![element.clone(), element]);
    let rows = array(ElementType::S32, &[2, 1], vec![1i32, 2]);
    let same = array(ElementType::S32, &[1], vec![3i32]);
    let read = |arrays: &[Literal]| npz::read_rows(file_of(arrays), "in", &[&shape], 2);
    assert_eq!(read(&[rows.clone(), rows.clone()]).unwrap().len(), 2);
    let error = read(&[rows, same]).unwrap_err().to_string();
    assert!(error.contains("array `in1`") && error.contains("rows, or none"), "{error}");
}

#[test]
fn arrays_can_be_read_as_they_are() {
    let arrays = [
        array(ElementType::Pred, &[2], vec![true, false]),
        array(ElementType::F16, &[], vec![half::f16::ONE]),
        array(ElementType::U64, &[1, 2], vec![1u64, u64::MAX]),
        array(ElementType::C64, &[1], vec![num_complex::Complex::new(1.0f32, -2.0)]),
    ];
    assert_eq!(npz::read_all(file_of(&arrays), "in").unwrap(), arrays);
    // NumPy has no type for these elements, so they are stored as bits.
    let brain = array(ElementType::BF16, &[1], vec![bf16::ONE]);
    let bits = array(ElementType::U16, &[1], vec![bf16::ONE.to_bits()]);
    assert_eq!(npz::read_all(file_of(&[brain]), "in").unwrap(), [bits]);
    let text = npy("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", &[65, 0, 0, 0]);
    let file = Cursor::new(zip_of("in0.npy", &text));
    let error = npz::read_all(file, "in").unwrap_err().to_string();
    assert!(error.contains("array `in0`") && error.contains("no type of HLO's"), "{error}");
}

#[test]
fn devices_have_inputs_of_their_own() {
    let text = "HloModule m\nENTRY e {\n  ROOT a = f32[50] parameter(0)\n}";
    let module = tilewright_text::parse_and_verify(text).map_err(|e| format!("{e:?}")).unwrap();
    let limits = Limits { max_bytes: 600, ..Limits::default() };
    let inputs = RandomInputs::new(3, InputKind::Normal).limits(limits);
    let on = |count| inputs.devices(count).generate(&module);
    let three = on(3).unwrap();
    assert_eq!(three[0], inputs_for(&module, 3, InputKind::Normal).unwrap());
    assert!(three[0] != three[1] && three[1] != three[2] && three[0] != three[2]);
    assert_eq!(on(4).unwrap_err(), InputError::Memory { needed: 800, limit: 600 });
}
