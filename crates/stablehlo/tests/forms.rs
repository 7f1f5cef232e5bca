//! What HLO becomes StableHLO and back, form by form. What is expected is what jaxlib 0.12.0.1 writes and reads,
//! unless a test says otherwise.

use tilewright_ir::Verified;
use tilewright_stablehlo::{ImportErrorKind, export, import, lost, print, text};

fn hlo(text: &str) -> Verified {
    tilewright_text::parse_and_verify(&format!("HloModule m\n{text}"))
        .unwrap_or_else(|e| panic!("{e:?}"))
}

/// The StableHLO of the entry of a module.
fn written(text: &str) -> String {
    print(&export(&hlo(text)).unwrap_or_else(|error| panic!("{error}")))
}

fn refused(text: &str) -> String {
    export(&hlo(text)).unwrap_err().to_string()
}

fn read(source: &str) -> Result<String, (ImportErrorKind, String)> {
    let program = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let module = import(&program).map_err(|error| (error.kind, error.message))?;
    let options = tilewright_text::PrintOptions::new();
    Ok(tilewright_text::print(&module, &options).unwrap())
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn bitcasts_move_as_their_layouts_say() {
    // By hand: in memory, p is [10,2,3,4] and the result [10,2,3,4] too, so that one transpose is left.
    let text = written(
        "ENTRY e { p = f32[10,2,3,4]{3,2,1,0} parameter(0) \
         ROOT t = f32[2,3,10,4]{3,1,0,2} bitcast(p) }",
    );
    assert_has(&text, &["stablehlo.transpose %arg0, dims = [1, 2, 0, 3]"]);
    // Column major in, row major out: [3,2] in memory is read as [6].
    let text = written("ENTRY e { p = f32[2,3]{0,1} parameter(0) ROOT t = f32[6]{0} bitcast(p) }");
    assert_has(&text, &["stablehlo.transpose %arg0, dims = [1, 0]", "stablehlo.reshape"]);
    let text = written("ENTRY e { p = f32[8]{0} parameter(0) ROOT t = u8[2,16]{1,0} bitcast(p) }");
    assert_has(&text, &["stablehlo.bitcast_convert", "tensor<8x4xui8>", "tensor<2x16xui8>"]);
    let tiled =
        "ENTRY e { p = f32[8,128]{1,0:T(8,128)} parameter(0) ROOT t = f32[1024]{0} bitcast(p) }";
    assert!(refused(tiled).contains("`t`: a bitcast of tiled"));
    let longer = "ENTRY e { p = f32[5]{0} parameter(0) ROOT t = f32[8]{0} bitcast(p) }";
    assert!(refused(longer).contains("`t`: a bitcast to a buffer of another size"));
    // jaxlib writes these attributes, and loses them when it reads.
    let source = "func.func @main(%a: tensor<10x2x3x4xf32>) -> tensor<2x3x10x4xf32> {
      %r = mhlo.bitcast %a {result_layout = dense<[3, 1, 0, 2]> : tensor<4xindex>, \
      source_layout = dense<[3, 2, 1, 0]> : tensor<4xindex>} : (tensor<10x2x3x4xf32>) -> tensor<2x3x10x4xf32>
      return %r : tensor<2x3x10x4xf32> }";
    assert_has(&read(source).unwrap(), &["dimensions={1,2,0,3}"]);
}

/// StableHLO has no layouts: compilers behind PJRT refuse `mhlo.copy`.
#[test]
fn copies_and_fusions_are_no_ops_of_mhlo() {
    let text = written(
        "f { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) } ENTRY e { p = f32[4] parameter(0) \
         c = f32[4] copy(p) f = f32[4] fusion(c), kind=kLoop, calls=f a = f32[4] acos(f) ROOT t = f32[4] erf(a) }",
    );
    assert_has(&text, &["call @f(%arg0)", "chlo.acos", "chlo.erf"]);
    assert!(!text.contains("mhlo."), "{text}");
    let sharded = written(
        "ENTRY e { p = f32[4] parameter(0) ROOT c = f32[4] copy(p), sharding={devices=[2]<=[2]} }",
    );
    assert_has(&sharded, &["stablehlo.custom_call @Sharding(%arg0)", "devices=[2]<=[2]"]);
    // Another attribute of a front end is no constraint.
    let marked = written(
        "ENTRY e { p = f32[4] parameter(0) ROOT c = f32[4] copy(p), frontend_attributes={a=\"b\"} }",
    );
    assert!(!marked.contains("Sharding"), "{marked}");
}

#[test]
fn what_stablehlo_refuses_is_not_written() {
    let text = written(
        "f { p = f32[] parameter(0) ROOT s = f32[] add(p, p) } \
         ENTRY e { x = f32[2,3] parameter(0) ROOT m = f32[2,3] map(x), to_apply=f }",
    );
    assert_has(&text, &["dimensions = array<i64: 0, 1>"]);
    let text = written(
        "ENTRY e { mask = pred[4,1,1] parameter(0) x = f32[1,4,1] parameter(1) ROOT c = f32[1,4,1] \
         convolution(x, mask), window={size=4 pad=1_2}, dim_labels=b0f_0io->b0f }",
    );
    assert_has(&text, &["stablehlo.convert %arg0 : (tensor<4x1x1xi1>) -> tensor<4x1x1xf32>"]);
    let text = written(
        "s { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) } \
         ENTRY e { x = f32[] parameter(0) ROOT r = f32[] reduce-window(x, x), to_apply=s }",
    );
    assert_has(&text, &["window_dimensions = array<i64>"]);
    let refusals = [
        (
            "ENTRY e { x = f32[4] parameter(0) ROOT c = f32[4] custom-call(x), custom_call_target=\"t\", \
             backend_config=\"fast\", api_version=API_VERSION_TYPED_FFI }",
            "`c`: the configuration of a typed call is no dictionary of MLIR",
        ),
        (
            "ENTRY e { x = f32[4] parameter(0) ROOT c = bf16[4] minimum(x, x) }",
            "`c`: floats of different precision meet",
        ),
        (
            "ENTRY e { x = f32[4] parameter(0) ROOT c = (f32[4], f32[4]) collective-permute(x, x), \
             source_target_pairs={{0,1}} }",
            "`c`: StableHLO permutes one array at a time",
        ),
    ];
    for (text, expected) in refusals {
        assert!(refused(text).contains(expected), "{}", refused(text));
    }
}

/// What a custom call says beside the op that it carries is said of the op.
#[test]
fn ops_within_custom_calls_keep_their_shardings() {
    let source = r#"sdy.mesh @mesh = <["x"=2]>
      func.func @main(%x: tensor<16x8xf32>) -> (tensor<16x2xf32>, tensor<16x2xi32>) {
        %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = false}, mhlo.version = 1 : i64,
          sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{"x"}, {}]>]>}
          : (tensor<16x8xf32>) -> (tensor<16x2xf32>, tensor<16x2xi32>)
        return %0#0, %0#1 : tensor<16x2xf32>, tensor<16x2xi32> }"#;
    let text = read(source).unwrap();
    assert_has(&text, &["topk(%Arg_0), k=2, largest=false, sharding={{devices=[2,1]<=[2]}, "]);
}

/// Collectives are started, and read as they were; a computation is called where it starts, and a copy is its operand.
#[test]
fn asynchronous_ops_are_written() {
    let text = written(
        "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
         scatter { x = f32[8] parameter(0) ROOT r = f32[4] reduce-scatter(x), replica_groups={{0,1}}, channel_id=3,
           use_global_device_ids=true, dimensions={0}, to_apply=sum }
         negated { x = f32[4] parameter(0) ROOT r = f32[4] negate(x) }
         ENTRY e { x = f32[4] parameter(0)
           s = (f32[4], f32[8]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}, channel_id=1, use_global_device_ids=true
           d = f32[8] all-gather-done(s)
           p = (f32[4], f32[4]) collective-permute-start(x), source_target_pairs={{0,1}}, channel_id=2
           q = f32[4] collective-permute-done(p)
           r = f32[8] all-reduce-start(d), replica_groups={{0,1}}, channel_id=4, use_global_device_ids=true, to_apply=sum
           t = f32[8] all-reduce-done(r)
           u = ((f32[8]), f32[4], s32[]) async-start(t), calls=scatter
           v = ((f32[8]), f32[4], s32[]) async-update(u)
           w = f32[4] async-done(v)
           y = ((f32[4]), f32[4], s32[]) async-start(w), calls=negated
           z = f32[4] async-done(y)
           c = (f32[4], f32[4], u32[]) copy-start(z)
           o = f32[4] copy-done(c)
           ROOT result = (f32[4], f32[4]) tuple(o, q) }",
    );
    assert_eq!(text.matches("stablehlo.async_start").count(), 4, "{text}");
    assert_eq!(text.matches("stablehlo.async_done").count(), 4, "{text}");
    assert_has(&text, &["call @negated("]);
    let again = read(&text).unwrap();
    let starts =
        ["all-gather-start(", "collective-permute-start(", "all-reduce-start(", "async-start("];
    assert_has(&again, &starts);
    assert_has(
        &again,
        &["all-gather-done(", "collective-permute-done(", "all-reduce-done(", "async-done("],
    );
    let module = hlo(
        "negated { x = f32[4] parameter(0) ROOT r = f32[4] negate(x) }
         ENTRY e { x = f32[4] parameter(0) y = ((f32[4]), f32[4], s32[]) async-start(x), calls=negated
         ROOT z = f32[4] async-done(y) }",
    );
    let lines = lost(&module);
    assert!(lines.iter().any(|line| line.contains("called at their start: `y`")), "{lines:?}");
}

/// A loop over a tuple of one array has one result, and the sharding of that.
#[test]
fn a_loop_over_one_array_is_sharded_as_the_array() {
    let text = written(
        "c { p = (f32[2]) parameter(0) ROOT r = pred[] constant(false) }
         b { p = (f32[2]) parameter(0) x = f32[2] get-tuple-element(p), index=0 y = f32[2] negate(x)
           ROOT t = (f32[2]) tuple(y) }
         ENTRY e { x = f32[2] parameter(0) t = (f32[2]) tuple(x)
           w = (f32[2]) while(t), condition=c, body=b, sharding={{devices=[2]<=[2]}}
           ROOT g = f32[2] get-tuple-element(w), index=0 }",
    );
    assert_has(&text, &["mhlo.sharding = \"{devices=[2]<=[2]}\""]);
    assert_has(&read(&text).unwrap(), &["while(%Arg_0)", "sharding={devices=[2]<=[2]}"]);
}

/// Arithmetic on scalars and tensors of MLIR's own dialects, and what has no effect. By hand.
#[test]
fn arithmetic_of_other_dialects_is_read() {
    let source = "func.func @main(%a: tensor<2xf32>, %i: i64) -> (tensor<2xf32>, i64) {
      %e = tensor.empty() : tensor<2xf32>
      %s = arith.addf %a, %e : tensor<2xf32>
      %d = arith.divf %s, %a : tensor<2xf32>
      %m = arith.subf %d, %a : tensor<2xf32>
      %f = arith.mulf %m, %a : tensor<2xf32>
      \"mhlo.trace\"(%f) {tag = \"here\"} : (tensor<2xf32>) -> ()
      %j = arith.addi %i, %i : i64
      %k = arith.subi %j, %i : i64
      %two = arith.constant 2 : i64
      %l = arith.muli %k, %two : i64
      return %f, %l : tensor<2xf32>, i64 }";
    assert_has(
        &read(source).unwrap(),
        &[
            "f32[] constant(0)",
            "add(%Arg_0, %broadcast",
            "broadcast(%constant), dimensions={}",
            "s64[] constant(2)",
        ],
    );
    let growing = "func.func @main(%n: index) -> tensor<?xf32> {
      %e = \"tensor.empty\"(%n) : (index) -> tensor<?xf32> return %e : tensor<?xf32> }";
    assert_has(&read(growing).unwrap_err().1, &["has sizes that only a run tells"]);
}

/// What MHLO starts may be a function. jaxlib calls it, too, and then inlines it.
#[test]
fn a_function_is_started() {
    let source = "func.func @half(%a: tensor<2xf32>) -> tensor<2xf32> attributes {execution_thread = \"other\"} {
      %r = stablehlo.negate %a : tensor<2xf32>
      return %r : tensor<2xf32> }
    func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %s = \"mhlo.async_start\"(%a) {called_computation = @half, execution_thread = \"other\"}
        : (tensor<2xf32>) -> !mhlo.async_bundle<tensor<2xf32>, tensor<2xf32>>
      %r = \"mhlo.async_done\"(%s) : (!mhlo.async_bundle<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
      return %r : tensor<2xf32> }";
    assert_has(&read(source).unwrap(), &["ROOT %call = f32[2]{0} call(%Arg_0), to_apply=%half"]);
    let nothing = source.replace("called_computation = @half, ", "");
    assert_has(&read(&nothing).unwrap_err().1, &["has no region"]);
}

/// Collectives of Shardy move nothing only where they name no axes.
#[test]
fn collectives_along_axes_are_refused() {
    let of = |axes: &str| {
        read(&format!(
            r#"sdy.mesh @mesh = <["x"=2]>
            func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
              %0 = "sdy.all_reduce"(%x) <{{{axes}out_sharding = #sdy.sharding<@mesh, [{{}}]>}}> : (tensor<4xf32>) -> tensor<4xf32>
              return %0 : tensor<4xf32> }}"#
        ))
    };
    assert!(of("reduction_axes = #sdy<list_of_axis_refs {}>, ").is_ok());
    for axes in ["", r#"reduction_axes = #sdy<list_of_axis_refs {"x"}>, "#] {
        let (kind, message) = of(axes).unwrap_err();
        assert_eq!(kind, ImportErrorKind::Unsupported);
        assert_has(&message, &["exchanges values between devices"]);
    }
}

/// The steps of a broadcast have no sharding but for the last one.
#[test]
fn the_last_step_of_a_broadcast_is_sharded() {
    let source = include_str!("../../../fixtures/stablehlo/read_only/broadcast_with_sharding.mlir");
    let text = read(source).unwrap();
    let sharded: Vec<&str> = text.lines().filter(|line| line.contains("sharding={")).collect();
    assert_eq!(sharded.iter().filter(|line| line.contains("reshape(")).count(), 0, "{text}");
    assert!(
        sharded.iter().any(|line| line.contains("ROOT") && line.contains("broadcast(")),
        "{text}"
    );
}

/// Each instruction that StableHLO cannot say is named, not only the first.
#[test]
fn all_refusals_are_told() {
    let bad = |i: usize| format!("c{i} = bf16[4] minimum(x, x)\n");
    let text = |count: usize| {
        let all: String = (0..count).map(bad).collect();
        format!("ENTRY e {{ x = f32[4] parameter(0)\n{all} ROOT r = bf16[4] add(c0, c1) }}")
    };
    let told = refused(&text(2));
    assert!(told.starts_with("instruction `c0`: floats of different precision meet"), "{told}");
    assert!(told.contains("\ninstruction `c1`: floats of different"), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
    let told = refused(&text(15));
    assert!(told.ends_with("\nand 4 more"), "{told}");
    // Those of a computation that several ops share are named once, and after them those of the entry.
    let bad = "ROOT c = bf16[] minimum(a, b)";
    let told = refused(&format!(
        "f {{ a = f32[] parameter(0) b = f32[] parameter(1) {bad} }}
         ENTRY e {{ x = f32[4] parameter(0) y = f32[4] parameter(1)
         m = bf16[4] map(x, y), to_apply=f, dimensions={{0}}
         n = bf16[4] map(y, x), to_apply=f, dimensions={{0}}
         d = bf16[4] minimum(x, y)
         ROOT t = (bf16[4], bf16[4], bf16[4]) tuple(m, n, d) }}"
    ));
    let named = ["instruction `c`", "instruction `d`"];
    assert!(told.lines().zip(named).all(|(line, name)| line.starts_with(name)), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
}

/// Arguments are flat, and so is what is said of them.
#[test]
fn tuples_of_the_entry_are_flat() {
    let module = tilewright_text::parse_and_verify(
        "HloModule swap, input_output_alias={ {0}: (0, {0}, may-alias), {1}: (0, {1}, may-alias) }, \
         buffer_donor={ (1, {}) }, \
         entry_computation_layout={((f32[2,3]{0,1}, f32[2,3]{1,0}), s32[4]{0})->(f32[2,3]{1,0}, f32[2,3]{0,1})}
         ENTRY main { pair = (f32[2,3]{0,1}, f32[2,3]{1,0}) parameter(0) n = s32[4] parameter(1)
         b = f32[2,3]{1,0} get-tuple-element(pair), index=1 a = f32[2,3]{0,1} get-tuple-element(pair), index=0
         ROOT t = (f32[2,3]{1,0}, f32[2,3]{0,1}) tuple(b, a), sharding={{replicated}, {devices=[2,1]<=[2]}} }",
    )
    .unwrap_or_else(|e| panic!("{e:?}"));
    let text = print(&export(&module).unwrap());
    assert_has(
        &text,
        &[
            "parameter_index = array<i64>, parameter_number = 0 : i64}, output_index = array<i64: 0>",
            "parameter_index = array<i64>, parameter_number = 1 : i64}, output_index = array<i64: 1>",
            "parameter_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<0> : tensor<1xindex>]",
            "result_layout = [dense<[1, 0]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>]",
            "%arg2: tensor<4xi32> {jax.buffer_donor = true}",
            "{mhlo.sharding = \"{devices=[2,1]<=[2]}\"}",
        ],
    );
    let read = read(&text).unwrap();
    assert_has(
        &read,
        &[
            "{0}: (0, {}, may-alias), {1}: (1, {}, may-alias)",
            "buffer_donor={ (2, {}) }",
            "(f32[2,3]{0,1}, f32[2,3]{1,0}, s32[4]{0})->(f32[2,3]{1,0}, f32[2,3]{0,1})",
        ],
    );
}

#[test]
fn layouts_and_tiles_of_the_entry_come_back() {
    let text = written(
        "ENTRY e { a = f32[16,128]{0,1:T(8,128)} parameter(0) ROOT t = f32[16,128]{0,1:T(8,128)} negate(a) }",
    );
    assert_has(
        &text,
        &[
            "parameter_layouts = [dense<[0, 1]> : tensor<2xindex>]",
            "parameter_tiles = [[dense<[8, 128]> : tensor<2xindex>]]",
            "result_tiles = [[dense<[8, 128]> : tensor<2xindex>]]",
        ],
    );
    assert_has(&read(&text).unwrap(), &["(f32[16,128]{0,1:T(8,128)})->f32[16,128]{0,1:T(8,128)}"]);
}

#[test]
fn what_is_left_out_is_told() {
    let module = hlo("ENTRY main { x = f32[100,3,70]{0,1,2} parameter(0) \
         y = f32[3,100,70]{0,2,1} transpose(x), dimensions={1,0,2} \
         c = f32[3,100,70]{0,2,1:S(1)} custom-call(y), custom_call_target=\"place\", \
         operand_layout_constraints={f32[3,100,70]{0,2,1:S(1)}}, schedule=SCHEDULE_LATEST \
         k = (f32[3,100,1], s32[3,100,1]) topk(c), k=1, largest=false \
         v = f32[3,100,1] get-tuple-element(k), index=0 \
         ROOT r = f32[3,100,1] negate(v), control-predecessors={c} }");
    assert_eq!(
        lost(&module),
        [
            "StableHLO cannot say layouts, which are left out: `y`",
            "StableHLO cannot say memory spaces, which are left out: `c`",
            "StableHLO cannot say schedules, which are left out: `c`",
            "StableHLO cannot say control-predecessors, which are left out: `r`",
            "only MHLO has the op, so that compilers behind PJRT refuse it: `k`",
        ]
    );
    assert!(
        lost(&hlo("ENTRY e { x = f32[4]{0} parameter(0) ROOT y = f32[4]{0} copy(x) }")).is_empty()
    );
}

#[test]
fn sizes_that_are_known_are_static() {
    let source = "func.func @main(%x: tensor<8xi32>, %n: tensor<i32>) -> (tensor<8xi32>, tensor<8xi32>) {
      %full = stablehlo.constant dense<8> : tensor<i32>
      %1 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8xi32>, tensor<i32>) -> tensor<?xi32, #stablehlo.bounds<8>>
      %2 = stablehlo.set_dimension_size %1, %full, dim = 0 : (tensor<?xi32, #stablehlo.bounds<8>>, tensor<i32>) -> tensor<8xi32>
      %3 = stablehlo.set_dimension_size %x, %full, dim = 0 : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
      return %2, %3 : tensor<8xi32>, tensor<8xi32> }";
    let text = read(source).unwrap();
    assert_has(&text, &["s32[<=8]{0} set-dimension-size(", "s32[8]{0} set-dimension-size("]);
    assert_eq!(text.matches("set-dimension-size(").count(), 2, "{text}");
    // A bounded dim keeps its bound where it is moved, and where the type says nothing.
    let source = "func.func @main(%x: tensor<3x4xi32>, %n: tensor<i32>) -> tensor<4x?xi32, #stablehlo.bounds<?, 3>> {
      %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<3x4xi32>, tensor<i32>) -> tensor<?x4xi32, #stablehlo.bounds<3, ?>>
      %1 = stablehlo.broadcast_in_dim %0, dims = [1, 0] : (tensor<?x4xi32, #stablehlo.bounds<3, ?>>) -> tensor<4x?xi32, #stablehlo.bounds<?, 3>>
      %2 = stablehlo.add %1, %1 : (tensor<4x?xi32, #stablehlo.bounds<?, 3>>, tensor<4x?xi32, #stablehlo.bounds<?, 3>>) -> tensor<?x?xi32>
      %3 = stablehlo.negate %2 : tensor<?x?xi32>
      %4 = stablehlo.abs %3 : (tensor<?x?xi32>) -> tensor<4x?xi32, #stablehlo.bounds<?, 3>>
      return %4 : tensor<4x?xi32, #stablehlo.bounds<?, 3>> }";
    assert_has(
        &read(source).unwrap(),
        &["s32[4,<=3]{0,1} transpose(", "s32[4,<=3]{1,0} add(", "s32[4,<=3]{1,0} negate("],
    );
}

/// Sizes that operands say are computed, if they depend on no argument: here `concatenate(4 / 2, iota + 3)`.
#[test]
fn sizes_of_constants_are_computed() {
    let sizes = "%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4xf32>) -> tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      %h = stablehlo.divide %n, %two : tensor<i32>
      %h1 = stablehlo.reshape %h : (tensor<i32>) -> tensor<1xi32>
      %i = stablehlo.iota dim = 0 : tensor<1xi32>
      %three = stablehlo.constant dense<3> : tensor<1xi32>
      %t = stablehlo.add %i, %three : tensor<1xi32>
      %s = stablehlo.concatenate %h1, %t, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>";
    let program = |op: &str, ty: &str| {
        read(&format!(
            "func.func @main(%x: tensor<4xf32>, %m: tensor<2xi32>) -> {ty} {{
               {sizes}
               {op}
               return %r : {ty} }}"
        ))
    };
    let scalar = "%z = stablehlo.constant dense<0.0> : tensor<f32>";
    let broadcast = |sizes: &str| {
        format!(
            "{scalar}
             %r = stablehlo.dynamic_broadcast_in_dim %z, {sizes}, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>"
        )
    };
    let known = program(&broadcast("%s"), "tensor<?x?xf32>").unwrap();
    assert_has(&known, &["f32[2,3]{1,0} broadcast("]);
    let iota = "%r = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<?x?xi32>";
    assert_has(&program(iota, "tensor<?x?xi32>").unwrap(), &["s32[2,3]{1,0} iota("]);
    // An argument says nothing before the program runs.
    let (kind, message) = program(&broadcast("%m"), "tensor<?x?xf32>").unwrap_err();
    assert_eq!(kind, ImportErrorKind::Unsupported);
    assert!(message.contains("has sizes that only a run tells"), "{message}");
    // The type and the sizes must agree.
    let wrong = broadcast("%s").replace("tensor<?x?xf32>", "tensor<?x5xf32>");
    let (kind, message) = program(&wrong, "tensor<?x5xf32>").unwrap_err();
    assert_eq!(kind, ImportErrorKind::Malformed);
    assert!(message.contains("has sizes that its type does not have"), "{message}");
}

/// The padding of a convolution may be an operand.
#[test]
fn padding_of_constants_is_computed() {
    let source =
        "func.func @main(%x: tensor<1x4x1xf32>, %k: tensor<3x1x1xf32>) -> tensor<1x5x1xf32> {
      %p = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi32>
      %0 = \"stablehlo.dynamic_conv\"(%x, %k, %p) <{
        batch_group_count = 1 : i64, feature_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>
      }> : (tensor<1x4x1xf32>, tensor<3x1x1xf32>, tensor<1x2xi32>) -> tensor<1x5x1xf32>
      return %0 : tensor<1x5x1xf32> }";
    assert_has(&read(source).unwrap(), &["window={size=3 pad=1_2}", "dim_labels=b0f_0io->b0f"]);
}

/// Small programs that stand for large ones end at once.
#[test]
fn small_programs_that_grow_end_in_an_error() {
    let mut maps = "f0 { p = f32[] parameter(0) ROOT r = f32[] add(p, p) }\n".to_owned();
    let mut composites =
        "func.func private @f0(%p: tensor<f32>) -> tensor<f32> { return %p : tensor<f32> }\n"
            .to_owned();
    for (i, before) in (1..=40).zip(0..) {
        maps += &format!(
            "f{i} {{ p = f32[] parameter(0) a = f32[] map(p), to_apply=f{before} \
             ROOT b = f32[] map(a), to_apply=f{before} }}\n"
        );
        composites += &format!(
            "func.func private @f{i}(%p: tensor<f32>) -> tensor<f32> {{
             %a = stablehlo.composite \"a.b\" %p {{decomposition = @f{before}}} : (tensor<f32>) -> tensor<f32>
             %b = stablehlo.composite \"a.b\" %a {{decomposition = @f{before}}} : (tensor<f32>) -> tensor<f32>
             return %b : tensor<f32> }}\n"
        );
    }
    maps += "ENTRY e { p = f32[] parameter(0) ROOT r = f32[] map(p), to_apply=f40 }";
    composites += "func.func @main(%p: tensor<f32>) -> tensor<f32> {
      %a = stablehlo.composite \"a.b\" %p {decomposition = @f40} : (tensor<f32>) -> tensor<f32>
      return %a : tensor<f32> }";
    assert!(refused(&maps).contains("repeated too often"));
    let (kind, message) = read(&composites).unwrap_err();
    assert_eq!((kind, message.contains("repeated too often")), (ImportErrorKind::TooDeep, true));
    // A location with 2^60 parts.
    let mut located = "#l0 = loc(\"a.py\":1:1)\n".to_owned();
    for (i, before) in (1..=60).zip(0..) {
        located += &format!("#l{i} = loc(callsite(#l{before} at #l{before}))\n");
    }
    for fused in [false, true] {
        let located = if fused {
            located.replace("callsite(", "fused[").replace(" at ", ", ").replace("))", "])")
        } else {
            located.clone()
        };
        let located = located.replace("1:1])", "1:1)");
        let source = format!(
            "{located}func.func @main(%p: tensor<f32>) -> tensor<f32> {{
             %a = stablehlo.negate %p : tensor<f32> loc(#l60)
             return %a : tensor<f32> }}"
        );
        assert!(read(&source).is_ok());
    }
    // No elements, of dims that say otherwise one by one.
    let source = "func.func @main() -> tensor<0x1099511627776xf32> {
      %c = stablehlo.constant dense<> : tensor<1099511627776x0xf32>
      %0 = stablehlo.transpose %c, dims = [1, 0] : (tensor<1099511627776x0xf32>) -> tensor<0x1099511627776xf32>
      return %0 : tensor<0x1099511627776xf32> }";
    assert_has(&read(source).unwrap(), &["f32[0,1099511627776]{0,1} transpose("]);
}
