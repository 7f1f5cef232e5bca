//! Ops that move elements: each alone, in both an array's own layout and others.

use super::{Near, Tally, agrees, agrees_somehow, op};

/// Types of every width.
const TYPES: [&str; 5] = ["f32", "f64", "bf16", "s8", "pred"];

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn permutations(rank: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..rank {
        all = all
            .into_iter()
            .flat_map(|begun: Vec<usize>| {
                let left = (0..rank).filter(|dim| !begun.contains(dim)).collect::<Vec<_>>();
                left.into_iter().map(move |dim| [begun.clone(), vec![dim]].concat())
            })
            .collect();
    }
    all
}

/// One op of one array, of all types, alone and between elementwise ops.
fn moves(from: &str, to: &str, call: &str) {
    for element in TYPES {
        let (x, y) = (format!("{element}{from}"), format!("{element}{to}"));
        agrees(Near::Same, &op(&[&x], &format!("ROOT r = {y} {call}")));
    }
    let (x, y) = (format!("f32{from}"), format!("f32{to}"));
    let call = call.replace("x0", "a");
    let between = format!("a = {x} negate(x0)\n  b = {y} {call}\n  ROOT r = {y} multiply(b, x1)");
    agrees(Near::Same, &op(&[&x, &y], &between));
}

#[test]
fn counts() {
    for dims in ["[7]", "[300]", "[3,5,140]", "[2,1,9]", "[1,1]", "[0,3]"] {
        let rank = dims.matches(',').count() + 1;
        for element in ["f32", "f64", "bf16", "f16", "s8", "s16", "s32", "s64", "u8", "u64"] {
            for dim in 0..rank {
                let root = format!("ROOT r = {element}{dims} iota(), iota_dimension={dim}");
                agrees(Near::Same, &op(&[], &root));
            }
        }
    }
}

#[test]
fn broadcasts() {
    let dims = [2, 3, 9, 130];
    for subset in 0..1 << dims.len() {
        let named: Vec<usize> = (0..dims.len()).filter(|dim| subset >> dim & 1 == 1).collect();
        let own: Vec<i32> = named.iter().map(|&dim| dims[dim]).collect();
        let call = format!("broadcast(x0), dimensions={{{}}}", joined(&named));
        moves(&format!("[{}]", joined(&own)), &format!("[{}]", joined(&dims)), &call);
    }
    for (from, to, named) in [
        ("[]", "[1]", ""),
        ("[]", "[0,5]", ""),
        ("[5]", "[0,5]", "1"),
        ("[1]", "[1,7]", "0"),
        ("[1]", "[7,1]", "1"),
        ("[1,5]", "[1,5,1]", "0,1"),
        ("[130]", "[130,130]", "0"),
        ("[130]", "[130,130]", "1"),
    ] {
        moves(from, to, &format!("broadcast(x0), dimensions={{{named}}}"));
    }
}

#[test]
fn reshapes() {
    for (a, b) in [
        ("[130]", "[1,130]"),
        ("[130]", "[130,1]"),
        ("[130]", "[1,1,130,1]"),
        ("[]", "[1,1]"),
        ("[0,3]", "[3,0,7]"),
        ("[16,256]", "[4096]"),
        ("[16,256]", "[16,2,128]"),
        ("[16,256]", "[4,4,256]"),
        ("[16,256]", "[64,64]"),
        ("[9,130]", "[1170]"),
        ("[9,130]", "[3,3,130]"),
        ("[9,130]", "[9,10,13]"),
        ("[9,130]", "[130,9]"),
        ("[9,130]", "[6,195]"),
        ("[2,3,4,5]", "[6,20]"),
        ("[2,3,4,5]", "[24,5]"),
        ("[2,3,4,5]", "[2,3,20]"),
        ("[2,3,40]", "[2,3,4,10]"),
        ("[2,3,40]", "[2,12,10]"),
        ("[8,8,16]", "[8,128]"),
        ("[5,7,2]", "[10,7]"),
    ] {
        moves(a, b, "reshape(x0)");
        moves(b, a, "reshape(x0)");
    }
}

#[test]
fn transposes() {
    for dims in [&[9, 130][..], &[5, 9, 35], &[2, 3, 9, 17]] {
        for order in permutations(dims.len()) {
            let to: Vec<i32> = order.iter().map(|&dim| dims[dim]).collect();
            let call = format!("transpose(x0), dimensions={{{}}}", joined(&order));
            moves(&format!("[{}]", joined(dims)), &format!("[{}]", joined(&to)), &call);
        }
    }
}

#[test]
fn slices() {
    for (from, to, slice) in [
        ("[130]", "[0]", "[5:5]"),
        ("[130]", "[1]", "[129:130]"),
        ("[130]", "[128]", "[0:128]"),
        ("[300]", "[100]", "[150:250]"),
        ("[300]", "[100]", "[1:300:3]"),
        ("[300]", "[3]", "[0:300:128]"),
        ("[9,130]", "[4,60]", "[3:7], [70:130]"),
        ("[9,130]", "[3,26]", "[1:9:3], [2:130:5]"),
        ("[17,256]", "[8,128]", "[8:16], [128:256]"),
        ("[4,9,35]", "[2,9,35]", "[1:4:2], [0:9], [0:35]"),
        ("[4,9,35]", "[4,1,35]", "[0:4], [8:9], [0:35]"),
        ("[4,9,35]", "[1,2,30]", "[3:4], [4:9:3], [5:35]"),
    ] {
        moves(from, to, &format!("slice(x0), slice={{{slice}}}"));
    }
}

#[test]
fn turned_around() {
    for (dims, named) in [
        ("[130]", "0"),
        ("[1]", "0"),
        ("[0]", "0"),
        ("[9,130]", "0"),
        ("[9,130]", "1"),
        ("[9,130]", "0,1"),
        ("[9,130]", ""),
        ("[3,8,128]", "0,1,2"),
        ("[3,5,140]", "0,2"),
        ("[3,5,140]", "1"),
    ] {
        moves(dims, dims, &format!("reverse(x0), dimensions={{{named}}}"));
    }
}

#[test]
fn pads() {
    let mut narrow = Tally::default();
    for (from, to, padding) in [
        ("[5]", "[9]", "1_3"),
        ("[5]", "[5]", "-2_2"),
        ("[5]", "[0]", "-3_-2"),
        ("[0]", "[4]", "1_3"),
        ("[5]", "[13]", "0_0_2"),
        ("[5]", "[10]", "-1_-2_2"),
        ("[5]", "[15]", "4_-2_2"),
        ("[1]", "[1]", "0_0_5"),
        ("[130]", "[300]", "100_70"),
        ("[9,130]", "[12,128]", "3_0x-1_-1"),
        ("[9,130]", "[21,263]", "2_2_1x2_2_1"),
        ("[3,5,40]", "[4,5,42]", "0_1x0_0x1_1"),
        ("[3,5,40]", "[2,13,40]", "0_-1x2_2_1x0_0"),
    ] {
        for element in TYPES {
            let (x, y) = (format!("{element}{from}"), format!("{element}{to}"));
            let value = if element == "pred" { "true" } else { "7" };
            let constant = format!(
                "c = {element}[] constant({value})\n  ROOT r = {y} pad(x0, c), padding={padding}"
            );
            // Conditions along two dims take more registers than `mlu-like` has where a
            // vector of narrow elements is four of indices.
            if padding.contains('x') && ["s8", "pred"].contains(&element) {
                narrow.add(agrees_somehow(Near::Same, &op(&[&x], &constant)));
                continue;
            }
            agrees(Near::Same, &op(&[&x], &constant));
            let given = format!("ROOT r = {y} pad(x0, x1), padding={padding}");
            agrees(Near::Same, &op(&[&x, &format!("{element}[]")], &given));
        }
    }
    println!("narrow elements along two dims: {narrow:?}");
    assert!(narrow.without_host * 8 >= narrow.runs, "{narrow:?}");
}

#[test]
fn concatenations() {
    for (parts, to, along) in [
        (&["[130]"][..], "[130]", 0),
        (&["[5]", "[0]", "[7]"], "[12]", 0),
        (&["[0]", "[5]"], "[5]", 0),
        (&["[0]", "[0]"], "[0]", 0),
        (&["[1]", "[128]", "[1]"], "[130]", 0),
        (&["[9,130]", "[9,1]", "[9,60]"], "[9,191]", 1),
        (&["[9,130]", "[1,130]", "[8,130]"], "[18,130]", 0),
        (&["[2,9,35]", "[1,9,35]"], "[3,9,35]", 0),
        (&["[2,9,35]", "[2,2,35]"], "[2,11,35]", 1),
        (&["[2,9,35]", "[2,9,100]", "[2,9,0]", "[2,9,1]"], "[2,9,136]", 2),
    ] {
        for element in TYPES {
            let shapes: Vec<String> = parts.iter().map(|part| format!("{element}{part}")).collect();
            let shapes: Vec<&str> = shapes.iter().map(String::as_str).collect();
            let names: Vec<String> = (0..parts.len()).map(|n| format!("x{n}")).collect();
            let root = format!(
                "ROOT r = {element}{to} concatenate({}), dimensions={{{along}}}",
                names.join(", ")
            );
            agrees(Near::Same, &op(&shapes, &root));
        }
    }
    let twice =
        "a = f32[4,50] negate(x0)\n  ROOT r = f32[4,150] concatenate(x0, a, x0), dimensions={1}";
    agrees(Near::Same, &op(&["f32[4,50]"], twice));
}

/// A copy from any layout to any other.
#[test]
fn layouts() {
    let dims = "[5,9,35]";
    for from in permutations(3) {
        for to in permutations(3) {
            let (x, y) =
                (format!("{dims}{{{}}}", joined(&from)), format!("{dims}{{{}}}", joined(&to)));
            moves(&x, &y, "copy(x0)");
        }
    }
    // One element after the other along another dim, or sums of both.
    agrees(
        Near::Same,
        &op(&["f32[9,130]{0,1}", "f32[9,130]"], "ROOT r = f32[9,130]{0,1} add(x0, x1)"),
    );
    agrees(
        Near::Same,
        &op(&["f32[9,130]{0,1}", "f32[9,130]{0,1}"], "ROOT r = f32[9,130] add(x0, x1)"),
    );
}

/// Tiles that a parameter or a result asks for: whether or not there is a kernel, the
/// numbers are right.
#[test]
fn tiles() {
    let mut all = Tally::default();
    for tiles in ["T(8,128)", "T(4,8)", "T(2,4)(2,1)", "T(128)", "T(3,12)", "T(32)"] {
        let mut tally = Tally::default();
        for element in TYPES {
            let tiled = format!("{element}[5,9,35]{{2,1,0:{tiles}}}");
            let turned = format!("{element}[5,9,35]{{1,2,0:{tiles}}}");
            let plain = format!("{element}[5,9,35]");
            for (x, y) in [
                (&tiled, &plain),
                (&plain, &tiled),
                (&tiled, &tiled),
                (&turned, &tiled),
                (&turned, &plain),
            ] {
                let copied = op(&[x], &format!("ROOT r = {y} copy(x0)"));
                tally.add(agrees_somehow(Near::Same, &copied));
                let name = if element == "pred" { "xor" } else { "add" };
                let both = format!("ROOT r = {y} {name}(x0, x1)");
                tally.add(agrees_somehow(Near::Same, &op(&[x, &plain], &both)));
            }
        }
        println!("{tiles}: {tally:?}");
        all.add(tally);
    }
    println!("all tiles: {all:?}");
    assert!(all.with_kernels * 100 >= all.runs, "{all:?}");
}
