//! Calls between the shapes of the whole and of a shard, on several partitions.

use tilewright_interp::{Devices, EvalError, Evaluation, InputKind, RandomInputs};
use tilewright_ir::{ArrayLiteral, Data, ElementType, Literal, Verified};

fn module(header: &str, body: &str) -> Verified {
    let text = format!("HloModule m{header}\n\nENTRY e {{\n{body}\n}}\n");
    tilewright_text::parse_and_verify(&text).expect("a module")
}

/// 0, 1, 2 ... in these dims.
fn counted(dims: [i64; 2]) -> Literal {
    let count: i64 = dims.iter().product();
    let numbers = (0..count).map(|n| i32::try_from(n).unwrap()).collect();
    ArrayLiteral::new(ElementType::S32, dims, Data::S32(numbers)).unwrap().into()
}

fn run(module: &Verified, inputs: &[Literal]) -> Result<Vec<Vec<i32>>, EvalError> {
    let all = Evaluation::new(module).devices(Devices::of(module)).run(&[inputs])?;
    let numbers = |value: &Literal| value.as_array().unwrap().as_slice::<i32>().unwrap().to_vec();
    Ok(all.iter().map(|outputs| numbers(&outputs.output)).collect())
}

const MESH: &str = r#", frontend_attributes={xla.sdy.meshes={m = #sdy.mesh<["x"=2, "y"=2], device_ids=[1, 0, 2, 3]>}}"#;

/// Returns a Shardy call from `in` to `out`.
fn call(name: &str, from: &str, to: &str, target: &str, dims: &str, manual: &str) -> String {
    let key = if target.starts_with('G') { "in" } else { "out" };
    format!(
        "{name} = {to} custom-call({from}), custom_call_target=\"xla.sdy.{target}Shape\", \
         frontend_attributes={{xla.sdy.{key}_shardings=\"#sdy.sharding_per_value<[<@m, {dims}>]>\",\
         xla.sdy.manual_axes=\"#sdy<manual_axes{{{manual}}}>\"}}"
    )
}

fn quoted(text: &str) -> String {
    text.replace('\'', "\\\"")
}

#[test]
fn each_partition_has_its_part_by_the_axes_of_a_mesh() {
    let [dims, axes] = ["[{'y'}, {'x'}]", "'x', 'y'"].map(quoted);
    let part = call("ROOT p", "a", "s32[2,2]", "GlobalToLocal", &dims, &axes);
    let module = module(MESH, &format!("a = s32[4,4] parameter(0)\n{part}"));
    // Device 1 is the first of the mesh, device 0 the second of its first row.
    let parts = run(&module, &[counted([4, 4])]).unwrap();
    let expected = [[8, 9, 12, 13], [0, 1, 4, 5], [2, 3, 6, 7], [10, 11, 14, 15]];
    assert_eq!(parts, expected.map(Vec::from));
}

#[test]
fn parts_are_put_together_again() {
    let [dims, axes] = ["[{'y'}, {'x'}]", "'x', 'y'"].map(quoted);
    let part = call("p", "a", "s32[2,2]", "GlobalToLocal", &dims, &axes);
    let turned = "t = s32[2,2] negate(p)";
    let whole = call("ROOT w", "t", "s32[4,4]", "LocalToGlobal", &dims, &axes);
    let module = module(MESH, &format!("a = s32[4,4] parameter(0)\n{part}\n{turned}\n{whole}"));
    let expected: Vec<i32> = (0..16).map(|n| -n).collect();
    assert_eq!(run(&module, &[counted([4, 4])]).unwrap(), vec![expected; 4]);
}

#[test]
fn axes_that_are_not_the_programs_own_cut_nothing() {
    let [dims, axes] = ["[{'x', 'y'}, {}]", "'x'"].map(quoted);
    let part = call("ROOT p", "a", "s32[2,1]", "GlobalToLocal", &dims, &axes);
    let module = module(MESH, &format!("a = s32[4,1] parameter(0)\n{part}"));
    let parts = run(&module, &[counted([4, 1])]).unwrap();
    assert_eq!(parts, [[0, 1], [0, 1], [2, 3], [2, 3]].map(Vec::from));
}

#[test]
fn each_partition_has_its_part_by_tiles() {
    let module = module(
        "",
        "a = s32[4,2] parameter(0)
         s = s32[4,2] custom-call(a), custom_call_target=\"Sharding\", \
           sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
         p = s32[2,2] custom-call(s), custom_call_target=\"SPMDFullToShardShape\", \
           sharding={manual}
         ROOT w = s32[4,2] custom-call(p), custom_call_target=\"SPMDShardToFullShape\", \
           sharding={devices=[2,1,2]3,1,2,0 last_tile_dim_replicate}",
    );
    // Partitions 0 and 2 have the first rows, 1 and 3 the last; 3 gives the first.
    let expected = vec![4, 5, 6, 7, 0, 1, 2, 3];
    assert_eq!(run(&module, &[counted([4, 2])]).unwrap(), vec![expected; 4]);
}

#[test]
fn whole_arrays_are_the_same_on_all() {
    let [dims, axes] = ["[{'y'}, {'x'}]", "'x', 'y'"].map(quoted);
    let part = call("ROOT p", "a", "s32[2,2]", "GlobalToLocal", &dims, &axes);
    let module = module(MESH, &format!("a = s32[4,4] parameter(0)\n{part}"));
    let inputs = RandomInputs::new(0, InputKind::Normal).devices(4).generate(&module).unwrap();
    assert!(inputs.iter().all(|device| *device == inputs[0]));
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let [dims, axes] = ["[{'y'}, {'x'}]", "'x', 'y'"].map(quoted);
    let part = call("ROOT p", "a", "s32[2,1]", "GlobalToLocal", &dims, &axes);
    let wrong = module(MESH, &format!("a = s32[4,4] parameter(0)\n{part}"));
    let error = run(&wrong, &[counted([4, 4])]).unwrap_err().to_string();
    assert!(error.contains("arrays cut into [2, 2] parts are none of s32[2,1]"), "{error}");
    // On another number of partitions than the mesh has, nothing is known.
    let [dims, axes] = ["[{}, {'x'}]", "'x'"].map(quoted);
    let part = call("ROOT p", "a", "s32[4,2]", "GlobalToLocal", &dims, &axes);
    let header = format!("{MESH}, num_partitions=2");
    let two = module(&header, &format!("a = s32[4,4] parameter(0)\n{part}"));
    let error = run(&two, &[counted([4, 4])]).unwrap_err().to_string();
    assert!(error.contains("what each of 2 partitions has of s32[4,2]"), "{error}");
}

#[test]
fn what_one_region_enters_another_leaves_for_each_device() {
    let [rows, columns] = ["[{'x'}, {}]", "[{}, {'y'}]"].map(quoted);
    let [x, y] = ["'x'", "'y'"].map(quoted);
    let lines = [
        "a = s32[4,4] parameter(0)".to_owned(),
        call("p", "a", "s32[2,4]", "GlobalToLocal", &rows, &x),
        call("q", "p", "s32[2,2]", "GlobalToLocal", &columns, &y),
        call("t", "q", "s32[2,4]", "LocalToGlobal", &columns, &y),
        call("ROOT w", "t", "s32[4,4]", "LocalToGlobal", &rows, &x),
    ];
    let module = module(MESH, &lines.join("\n"));
    let expected: Vec<i32> = (0..16).collect();
    assert_eq!(run(&module, &[counted([4, 4])]).unwrap(), vec![expected; 4]);
}

#[test]
fn a_part_that_a_device_has_itself_is_its_own() {
    // Each device has the whole, and keeps what it made of it.
    let [dims, axes] = ["[{}, {}]", "'x', 'y'"].map(quoted);
    let lines = [
        "a = s32[1,1] parameter(0)".to_owned(),
        call("p", "a", "s32[1,1]", "GlobalToLocal", &dims, &axes),
        "d = u32[] partition-id()\nn = s32[] convert(d)\nm = s32[1,1] reshape(n)".to_owned(),
        call("ROOT w", "m", "s32[1,1]", "LocalToGlobal", &dims, &axes),
    ];
    let module = module(MESH, &lines.join("\n"));
    let own = run(&module, &[counted([1, 1])]).unwrap();
    assert_eq!(own, [[0], [1], [2], [3]].map(Vec::from));
}

#[test]
fn what_is_no_part_is_refused() {
    let refused = |dims: &str, to: &str, header: &str, wanted: &str| {
        let [dims, axes] = [dims, "'x', 'y'"].map(quoted);
        let part = call("ROOT p", "a", to, "GlobalToLocal", &dims, &axes);
        // A collective tells how many partitions there are where the call does not.
        let all = "g = s32[16,4] all-gather(a), channel_id=1, replica_groups={{0,1,2,3}}, \
                   dimensions={0}, use_global_device_ids=true";
        let module = module(header, &format!("a = s32[4,4] parameter(0)\n{all}\n{part}"));
        let error = run(&module, &[counted([4, 4])]).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    refused("[{'y'}, {'x'}]", "f32[2,2]", MESH, "no array of f32");
    refused("[{'y'}, {'x'}], unreduced={'x'}", "s32[2,2]", MESH, "is not known");
    let short = MESH.replace("[1, 0, 2, 3]", "[1, 0, 2]");
    refused("[{'y'}, {'x'}]", "s32[2,2]", &short, "is not known");
    let twice = MESH.replace("[1, 0, 2, 3]", "[1, 1, 2, 3]");
    refused("[{'y'}, {'x'}]", "s32[2,2]", &twice, "is not known");
}
