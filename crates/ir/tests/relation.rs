//! The index relations of ops, each written as Einstein would: `i` is an index, `i!` a dim of it whose size
//! the op fixes, `i~` a part of it.

use tilewright_ir::{DimRole, Relation};

const COMPUTATIONS: &str =
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
pair { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  e = f32[] add(a, c) f = f32[] add(b, d) ROOT t = (f32[], f32[]) tuple(e, f) }";

/// Returns the relation of the root of an entry, its indices named in the order in which they occur.
fn relation(lines: &str) -> Option<String> {
    let text = format!("HloModule m\n{COMPUTATIONS}\nENTRY e {{\n{lines}\n}}");
    let module =
        tilewright_text::parse_and_verify(&text).unwrap_or_else(|e| panic!("{lines}: {e:?}"));
    let root = module.computation(module.entry().unwrap()).root().unwrap();
    let Relation { operands, results } = Relation::of(&module, root)?;
    let mut names: Vec<usize> = Vec::new();
    let mut name = |role: &DimRole| {
        let place = names.iter().position(|&known| known == role.number());
        let place = place.unwrap_or_else(|| {
            names.push(role.number());
            names.len() - 1
        });
        let letter = char::from(b'a' + u8::try_from(place).unwrap());
        match role {
            DimRole::Index(_) => letter.to_string(),
            DimRole::Fixed(_) => format!("{letter}!"),
            DimRole::Part(_) => format!("{letter}~"),
        }
    };
    let mut arrays = |all: &[Vec<DimRole>]| -> Vec<String> {
        all.iter().map(|dims| dims.iter().map(&mut name).collect::<String>()).collect()
    };
    let operands = arrays(&operands).join(",");
    Some(format!("{operands}->{}", arrays(&results).join(",")))
}

const X: &str = "x = f32[4,6] parameter(0) y = f32[6,4] parameter(1) s = f32[] parameter(2) i = s32[] parameter(3)";

#[test]
fn each_dim_has_its_index() {
    for (root, expected) in [
        ("f32[4,6] add(x, x)", "ab,ab->ab"),
        ("f32[4,6] clamp(s, x, s)", ",ab,->ab"),
        ("f32[6,4] transpose(x), dimensions={1,0}", "ab->ba"),
        ("f32[4,3,6] broadcast(x), dimensions={0,2}", "ab->acb"),
        ("f32[6] reduce(x, s), dimensions={0}, to_apply=add", "ab,->b"),
        ("(f32[4], f32[4]) reduce(x, x, s, s), dimensions={1}, to_apply=pair", "ab,ab,,->a,a"),
        ("f32[4,6] reverse(x), dimensions={1}", "ab->ab"),
        ("f32[4,6] sort(x), dimensions={1}, to_apply=less", "ab->ab"),
        ("f32[8,6] concatenate(x, x), dimensions={0}", "a!b,a!b->a!b"),
        ("f32[4,6] concatenate(x), dimensions={0}", "ab->ab"),
        ("f32[4,2] slice(x), slice={[0:4], [0:2]}", "ab!->ab!"),
        ("f32[2,6] slice(x), slice={[0:4:2], [0:6]}", "a!b->a!b"),
        ("f32[5,6] pad(x, s), padding=0_1x0_0", "a!b,->a!b"),
        ("f32[4,2] dynamic-slice(x, i, i), dynamic_slice_sizes={4,2}", "ab,,->ab~"),
        ("f32[2,3] reduce-window(x, s), window={size=2x2 stride=2x2}, to_apply=add", "a!b!,->a!b!"),
        ("f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "ab,bc->ac"),
        ("f32[6,4,4] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={0}", "ab,bc->bac"),
        (
            "(f32[2,3], f32[2,3]) reduce-window(x, x, s, s), window={size=2x2 stride=2x2}, to_apply=pair",
            "a!b!,a!b!,,->a!b!,a!b!",
        ),
    ] {
        let lines = format!("{X}\nROOT r = {root}");
        assert_eq!(relation(&lines).as_deref(), Some(expected), "{root}");
    }
}

#[test]
fn windows_and_what_is_looked_up() {
    let conv = "x = f32[2,8,8,3] parameter(0) k = f32[3,3,3,5] parameter(1)
      ROOT r = f32[2,6,6,5] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f";
    assert_eq!(relation(conv).as_deref(), Some("ab!c!d,e!f!dg->ab!c!g"));
    let grouped =
        conv.replace("f32[3,3,3,5]", "f32[3,3,1,3]").replace("f32[2,6,6,5]", "f32[2,6,6,3]")
            + ", feature_group_count=3";
    assert_eq!(relation(&grouped), None);
    let scattered = "x = f32[4,6] parameter(0) z = f32[2,3] parameter(1) s = f32[] parameter(2)
      ROOT r = f32[4,6] select-and-scatter(x, z, s), window={size=2x2 stride=2x2}, select=less, scatter=add";
    assert_eq!(relation(scattered).as_deref(), Some("a!b!,a!b!,->a!b!"));
    let gather = "x = f32[50,8] parameter(0) i = s32[7,1] parameter(1)
      ROOT r = f32[7,8] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
        index_vector_dim=1, slice_sizes={1,8}";
    assert_eq!(relation(gather).as_deref(), Some("ab,cd!->cb"));
    let part = gather.replace("f32[7,8] gather", "f32[7,3] gather").replace("{1,8}", "{1,3}");
    assert_eq!(relation(&part).as_deref(), Some("ab,cd!->cb~"));
    let scatter = "x = f32[50,8] parameter(0) i = s32[7,1] parameter(1) u = f32[7,8] parameter(2)
      ROOT r = f32[50,8] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add";
    assert_eq!(relation(scatter).as_deref(), Some("ab,cd!,cb->ab"));
}

#[test]
fn other_ops_have_none() {
    let reshape = format!("{X}\nROOT r = f32[24] reshape(x)");
    assert_eq!(relation(&reshape), None);
    let opaque = format!("{X}\nROOT r = f32[4,6] custom-call(x), custom_call_target=\"f\"");
    assert_eq!(relation(&opaque), None);
}
