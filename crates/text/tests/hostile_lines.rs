//! Tests one instruction with something enormous in it: nesting, numbers, names, strings,
//! lines. The properties of `testkit::properties` hold for all of them.
use tilewright_testkit::properties::{self, Outcome};

#[track_caller]
fn hold(text: &str) -> Outcome {
    let broken = |problem| -> Outcome {
        panic!("{problem}\nin\n{}", text.chars().take(1000).collect::<String>());
    };
    properties::text(text.as_bytes()).unwrap_or_else(broken)
}

fn entry(line: &str) -> String {
    format!("HloModule m\nENTRY e {{\n  x = f32[2] parameter(0)\n  ROOT r = {line}\n}}\n")
}

/// Attributes of every form, up to the brackets of their value.
const VALUES: [&str; 27] = [
    "f32[2] negate(x), sharding=",
    "f32[2] negate(x), sharding={devices=",
    "f32[2] negate(x), sharding={mesh",
    "f32[2] negate(x), sharding={mesh['x'=2], ",
    "f32[2] negate(x), sharding={mesh['x'=2], device_ids=",
    "f32[2] negate(x), sharding={replicated metadata=",
    "f32[2] negate(x), frontend_attributes=",
    "f32[2] negate(x), frontend_attributes={a=",
    "f32[2] negate(x), metadata=",
    "f32[2] negate(x), statistics=",
    "f32[2] negate(x), origin=",
    "f32[2] negate(x), backend_config=",
    "f32[2] negate(x), control-predecessors=",
    "f32[2] negate(x), anything=",
    "f32[2] parameter(1), parameter_replication=",
    "f32[2] all-reduce(x), replica_groups=",
    "f32[2] all-reduce(x), replica_groups=mesh",
    "f32[2] all-reduce(x), replica_groups=[2,2]<=",
    "f32[2] collective-permute(x), source_target_pairs=",
    "f32[2] custom-call(x), custom_call_target=\"t\", literal=",
    "f32[2] custom-call(x), custom_call_target=\"t\", literal=f32[2]{0} ",
    "f32[2] custom-call(x), custom_call_target=\"t\", output_to_operand_aliasing=",
    "f32[2] custom-call(x), custom_call_target=\"t\", operand_layout_constraints=",
    "f32[2] slice(x), slice=",
    "f32[2] domain(x), domain={kind=\"s\", entry=",
    "f32[2] exponential(x), result_accuracy=",
    "f32[2] call(x), to_apply=",
];

#[test]
fn brackets_of_every_kind_nested_in_every_value() {
    let deep = |s: &str| s.repeat(100_000);
    for value in VALUES {
        for (open, close) in [("{", "}"), ("[", "]"), ("(", ")"), ("{[(", ")]}"), ("{{},", "}")] {
            assert_ne!(hold(&entry(&format!("{value}{}", deep(open)))), Outcome::Verified);
            let closed = entry(&format!("{value}{}{}", deep(open), deep(close)));
            assert_ne!(hold(&closed), Outcome::Verified, "{value}{open}");
        }
    }
}

#[test]
fn brackets_nested_in_headers_and_shapes() {
    let deep = |s: &str| s.repeat(100_000);
    for start in [
        "HloModule m, input_output_alias=",
        "HloModule m, buffer_donor=",
        "HloModule m, entry_computation_layout=",
        "HloModule m, entry_computation_layout={",
        "HloModule m, frontend_attributes=",
        "HloModule m, allow_spmd_sharding_propagation_to_output=",
        "HloModule m, anything=",
        "HloModule ",
        "HloModule m\nFileNames\n1 ",
        "HloModule m\nENTRY e ",
        "HloModule m\nENTRY e { x = ",
        "HloModule m\nENTRY e { x = f32",
        "HloModule m\nENTRY e { x = f32[2]",
        "HloModule m\nENTRY e { x = f32[2]{0:T",
        "HloModule m\nENTRY e { x = f32[2]{0:P",
        "HloModule m\nENTRY e { x = f32[2] constant",
        "HloModule m\nENTRY e { x = (f32[2]) constant",
        "HloModule m\nENTRY e { x = f32[2] negate",
        "",
    ] {
        for bracket in ["{", "[", "(", "}", "]", ")", "b(", "{0:", "((f32[]),"] {
            assert_eq!(hold(&format!("{start}{}", deep(bracket))), Outcome::Syntax);
        }
    }
}

/// Tests the allowed depth and one more, for all brackets that nest.
#[test]
fn the_limit_of_nesting_is_one_for_reading_and_printing() {
    for depth in [10, 100, 196, 197, 198, 199, 200, 201, 202] {
        let deep = |s: &str| s.repeat(depth);
        let closed = |open: &str, inside: &str, close: &str| {
            format!("{}{inside}{}", deep(open), deep(close))
        };
        hold(&entry(&format!("f32[2] {}", closed("negate(", "x", ")"))));
        hold(&entry(&format!("{} parameter(1)", closed("(", "f32[2]", ")"))));
        hold(&entry(&format!("{} parameter(1)", closed("b(", "f32[2]", ")"))));
        hold(&entry(&format!("f32[2] negate(x), other={}", closed("{", "", "}"))));
        hold(&entry(&format!("f32[2] negate(x), backend_config={}", closed("{", "", "}"))));
        let string = format!("frontend_attributes={{a=\"{}\"}}", closed("{", "", "}"));
        hold(&entry(&format!("f32[2] negate(x), {string}")));
        hold(&entry(&format!("f32[2] negate(x), origin={{{}}}", closed("(", "{}", ")"))));
        hold(&entry(&format!("{} parameter(1)", closed("f32[2]{0:P(", "f32[2]", ")}"))));
    }
}

/// Sizes whose product no type counts, ranks that no array has.
#[test]
fn shapes_of_enormous_arrays() {
    let large = i64::MAX.to_string();
    let many = |size: &str, count: usize| vec![size; count].join(",");
    let shapes = [
        format!("f32[{large}]"),
        format!("f32[{large},{large}]"),
        format!("pred[{large},0]"),
        format!("f32[<={large},?]"),
        format!("f32[{}]", many("2", 62)),
        format!("f32[{}]", many("2", 64)),
        format!("f32[{}]", many("1", 256)),
        format!("f32[{}]", many("1", 257)),
        format!("f32[{}]", many("1", 100_000)),
        format!("f32[{}]{{{}}}", many("1", 8), many("7", 8)),
        format!("f32[2]{{0:T({})}}", many("1", 100_000)),
        format!("f32[2]{{0:T({large},{large})(-1)(0)}}"),
        format!("f32[2]{{0:E({large})S(-{large})}}"),
        format!("f32[2]{{0:SC({large}:{})}}", many("1", 50_000)),
        format!("f32[2]{{0:P({large})V(inf)}}"),
        format!("f32[{}]{{{}}}", many("0", 200), many("0", 200)),
    ];
    for shape in &shapes {
        for line in [
            format!("{shape} parameter(1)"),
            format!("{shape} constant({{...}})"),
            format!("{shape} constant({{}})"),
            format!("{shape} iota(), iota_dimension=0"),
            format!("{shape} broadcast(x), dimensions={{0}}"),
            format!("{shape} reshape(x)"),
            format!("{shape} bitcast(x)"),
            format!("({shape}, {shape}) custom-call(x), custom_call_target=\"t\""),
            format!("f32[2] custom-call({shape} x), custom_call_target=\"t\""),
        ] {
            hold(&entry(&line));
        }
    }
}

/// Tests numbers in each attribute that are too large, too small or too many.
#[test]
fn attributes_of_enormous_numbers() {
    let lines = [
        "f32[2] slice(x), slice={[N:N:N]}",
        "f32[2] pad(x, x), padding=N_N_N",
        "f32[2] dynamic-slice(x, x), dynamic_slice_sizes={N}",
        "f32[2] reduce(x, x), dimensions={N,N}, to_apply={ a = f32[] parameter(0) }",
        "f32[2] reduce-window(x, x), window={size=N stride=N pad=N_N lhs_dilate=N rhs_dilate=N}, to_apply={ a = f32[] parameter(0) }",
        "f32[2] convolution(x, x), window={size=N}, dim_labels=b0f_0io->b0f, feature_group_count=N, batch_group_count=N",
        "f32[2] gather(x, x), offset_dims={N}, collapsed_slice_dims={N}, start_index_map={N}, index_vector_dim=N, slice_sizes={N}",
        "f32[2] dot(x, x), lhs_contracting_dims={N}, rhs_contracting_dims={N}",
        "f32[2] transpose(x), dimensions={N}",
        "f32[2] concatenate(x, x), dimensions={N}",
        "f32[2] get-tuple-element(x), index=N",
        "f32[2] parameter(N)",
        "f32[2] fft(x), fft_type=FFT, fft_length={N,N}",
        "f32[2] all-gather(x), replica_groups=[N,N]<=[N,N]T(1,0), dimensions={N}, channel_id=N",
        "f32[2] all-to-all(x), replica_groups={{N},{N,N}}, dimensions={N}",
        "f32[2] all-reduce(x), replica_groups=mesh['x'=N,'y'=N], device_ids=(N,N) {'x':(N)N}, to_apply={ a = f32[] parameter(0) }",
        "f32[2] collective-permute(x), source_target_pairs={{N,N},{N,N}}, slice_sizes={{N}}",
        "f32[2] negate(x), sharding={devices=[N,N]<=[N]}",
        "f32[2] negate(x), sharding={devices=[N]N,N,N last_tile_dims={manual}}",
        "f32[2] negate(x), sharding={maximal device=N}",
        "f32[2] negate(x), sharding={mesh['x'=N,'y'=N], device_ids=([N,N]T(1,0)), [{'x':(N)N}, {'x':(N)N, ?}]}",
        "f32[2] negate(x), metadata={source_line=N stack_frame_id=N profile_type={N}}",
        "f32[2] negate(x), statistics={visualizing_index=N,a=N}",
        "f32[2] negate(x), origin={{\"x\" {N}}}",
        "f32[2] custom-call(x), custom_call_target=\"t\", output_to_operand_aliasing={{N}: (N, {N})}",
        "f32[2] reduce-precision(x), exponent_bits=N, mantissa_bits=N",
        "f32[2] rng-get-and-update-state(), delta=N",
        "f32[2] set-dimension-size(x, x), dimensions={N}",
        "f32[2] topk(x), k=N",
        "f32[2] sort(x), dimensions={N}, to_apply={ a = f32[] parameter(0) }",
        "f32[2] batch-norm-inference(x, x, x, x, x), epsilon=N, feature_index=N",
        "s64[] constant(N)",
        "f64[] constant(N)",
        "c64[] constant((N, N))",
        "s4[2] constant({N, N})",
    ];
    let numbers = ["0", "-1", "1", "9223372036854775807", "-9223372036854775808", "4294967296"];
    for line in lines {
        for number in numbers {
            hold(&entry(&line.replace('N', number)));
            // One of them large, the others small.
            for (at, _) in line.match_indices('N') {
                let line = format!("{}{number}{}", &line[..at], &line[at + 1..]);
                hold(&entry(&line.replace('N', "1")));
            }
        }
        hold(&entry(&line.replacen('N', &"1,".repeat(10_000), 1).replace('N', "1")));
        hold(&entry(&line.replace('N', &"9".repeat(10_000))));
    }
}

#[test]
fn enormous_names_strings_and_lines() {
    let long = "n".repeat(500_000);
    let texts = [
        format!("HloModule {long}\nENTRY {long} {{\n  ROOT {long} = f32[2] parameter(0)\n}}\n"),
        entry(&format!("f32[2] {long}(x)")),
        entry(&format!("{long}[2] negate(x)")),
        entry(&format!("f32[2] negate({long})")),
        entry(&format!("f32[2] negate(x), {long}={long}")),
        entry(&format!("f32[2] negate(x), metadata={{op_name=\"{long}\"}}")),
        entry(&format!("f32[2] negate(x), metadata={{{long}=1}}")),
        entry(&format!("f32[2] custom-call(x), custom_call_target=\"{long}\"")),
        entry(&format!(
            "f32[2] negate(x), frontend_attributes={{{long}=\"{}\"}}",
            "\\\"".repeat(200_000)
        )),
        entry(&format!("f32[2] negate(x), backend_config=\"{}", "\\\"".repeat(200_000))),
        entry(&format!("f32[2] negate(x), sharding={{mesh['{long}'=2], [{{'{long}'}}]}}")),
        entry(&format!("f32[2] constant({{{}}})", "1,".repeat(200_000))),
        entry(&format!("f32[200000] constant({{{}}})", "1,".repeat(200_000))),
        entry(&format!("f32[2] negate(x){}", " ".repeat(1_000_000))),
        entry(&format!("f32[2] negate(x) /*{long}*/")),
        entry(&format!("f32[2] negate(x) //{long}")),
        entry(&format!("f32[2] tuple({})", "x, ".repeat(100_000))),
        entry(&format!("f32[2] convolution(x, x), dim_labels={}", "0".repeat(200_000))),
        entry(&format!("f32[2] convolution(x, x), window={{size={}}}", "1x".repeat(100_000))),
        entry(&format!("f64[] constant(0.{})", "1".repeat(200_000))),
        entry(&format!("f64[] constant(1e{})", "9".repeat(200_000))),
    ];
    for text in &texts {
        hold(text);
        // All on one line.
        hold(&text.replace('\n', " "));
    }
}

/// After an error, strings are searched again; no quote is tried twice.
#[test]
fn quotes_that_nothing_closes_after_an_error() {
    let quotes = "\\\"".repeat(150_000);
    for wrong in ["f32[2] nonsense(x)", "f32[2] call(x), to_apply=nothing"] {
        let body = format!("{{ a = f32[] parameter(0), b=\"{quotes}\n}}");
        assert_eq!(hold(&entry(&format!("{wrong}, c={body}"))), Outcome::Syntax);
    }
}
