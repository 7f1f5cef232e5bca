//! One of nearly every op with its attributes: the texts are XLA's own prints
//! (jaxlib 0.10.2), and come back from our parser and printer byte for byte.
use crate::compare::{Detail, assert_same};
use tilewright_text::{LayoutPadding, PrintOptions, parse, print};

fn assert_comes_back(text: &str, options: &PrintOptions) {
    let read = |text: &str| match parse(text) {
        Ok(parsed) => parsed.module,
        Err(errors) => panic!("{errors}"),
    };
    let module = read(text);
    let printed = print(&module, options).unwrap();
    for (printed, text) in printed.lines().zip(text.lines()) {
        assert_eq!(printed, text);
    }
    assert_eq!(printed, text);
    assert_same(&module, &read(&printed), Detail::All, "reparsed");
}

#[test]
fn computing_ops() {
    assert_comes_back(COMPUTING, &PrintOptions::new());
}

#[test]
fn layouts_control_and_transfers() {
    assert_comes_back(CONTROL, &PrintOptions::new());
}

/// Only our parser can read these.
#[test]
fn padding_in_layouts() {
    let keep = PrintOptions::new().with_padding(LayoutPadding::Keep);
    assert_comes_back(PADDED, &keep);
}

const PADDED: &str =
    "HloModule m, entry_computation_layout={(f32[2,3]{0,1:P(3,5)})->f32[2,3]{0,1:P(3,5)}}

ENTRY %e (p: f32[2,3]) -> f32[2,3] {
  %p = f32[2,3]{0,1:P(3,5)} parameter(0)
  %t = (f32[2,3]{0,1:P(3,5)V(-inf)}, f32[]) custom-call(%p), custom_call_target=\"f\"
  ROOT %n = f32[2,3]{0,1:S(1)P(3,5)V(unknown)} negate(%p)
}
";

const COMPUTING: &str = r#"HloModule m, is_scheduled=true, entry_computation_layout={(f32[8,8]{1,0}, f32[8]{0}, s32[8,1]{1,0}, s32[8,8]{1,0}, f32[8,8,8,4]{3,2,1,0}, /*index=5*/f32[3,3,4,4]{3,2,1,0}, c64[8]{0}, u64[2]{0}, f32[8,8]{1,0}, s32[])->()}, num_partitions=4

%_ (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %r = f32[] add(%x, %y)
}

%_.1 (x.1: f32[], y.1: f32[]) -> f32[] {
  %x.1 = f32[] parameter(0)
  %y.1 = f32[] parameter(1)
  ROOT %r.1 = f32[] add(%x.1, %y.1)
}

%_.2 (x.2: f32[], y.2: f32[]) -> f32[] {
  %x.2 = f32[] parameter(0)
  %y.2 = f32[] parameter(1)
  ROOT %r.2 = f32[] add(%x.2, %y.2)
}

%_.3 (a: f32[], b2: f32[], c: s32[], d1: s32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b2 = f32[] parameter(1)
  %c = s32[] parameter(2)
  %d1 = s32[] parameter(3)
  ROOT %r.3 = pred[] compare(%a, %b2), direction=LT
}

%_.4 (q: f32[8,8]) -> f32[8,8] {
  %q = f32[8,8]{1,0} parameter(0)
  ROOT %n = f32[8,8]{1,0} negate(%q)
}

%_.5 (q.1: f32[8,8]) -> f32[8,8] {
  %q.1 = f32[8,8]{1,0} parameter(0)
  ROOT %n.1 = f32[8,8]{1,0} negate(%q.1)
}

%_.6 (x.3: f32[]) -> f32[] {
  %x.3 = f32[] parameter(0)
  ROOT %n.2 = f32[] negate(%x.3)
}

%_.7 (x.4: f32[], y.3: f32[]) -> pred[] {
  %x.4 = f32[] parameter(0)
  %y.3 = f32[] parameter(1)
  ROOT %c.1 = pred[] compare(%x.4, %y.3), direction=GE
}

%_.8 (x.5: f32[], y.4: f32[]) -> f32[] {
  %x.5 = f32[] parameter(0)
  %y.4 = f32[] parameter(1)
  ROOT %c.2 = f32[] add(%x.5, %y.4)
}

%_.9 (x.6: f32[], y.5: f32[]) -> f32[] {
  %x.6 = f32[] parameter(0)
  %y.5 = f32[] parameter(1)
  ROOT %c.3 = f32[] add(%x.6, %y.5)
}

ENTRY %e (p0: f32[8,8], p1: f32[8], z2: s32[8,1], io: s32[8,8], x4: f32[8,8,8,4], k4: f32[3,3,4,4], cz: c64[8], st: u64[2], upd: f32[8,8], s0: s32[]) -> () {
  %p0 = f32[8,8]{1,0} parameter(0), parameter_replication={true}, sharding={replicated}, frontend_attributes={a="b",c={x=1}}, statistics={visualizing_index=0,stat-1=33}, origin={{"x"}}, metadata={op_type="t" op_name="n\"q\\ \n\t\303\251\'" source_file="f\'\303\251.py" source_line=3 source_end_line=4 source_column=1 source_end_column=7 profile_type={1} deduplicated_name="d" scheduling_name="s"}, backend_config="x\"y"
  %p1 = f32[8]{0} parameter(1), control-predecessors={%p0}, metadata={op_name="\303\251" scheduling_name="s"}, backend_config={"a":{"b":1}}
  %z2 = s32[8,1]{1,0} parameter(2)
  %io = s32[8,8]{1,0} parameter(3)
  %x4 = f32[8,8,8,4]{3,2,1,0} parameter(4)
  %k4 = f32[3,3,4,4]{3,2,1,0} parameter(5)
  %cz = c64[8]{0} parameter(6)
  %st = u64[2]{0} parameter(7)
  %upd = f32[8,8]{1,0} parameter(8)
  %s0 = s32[] parameter(9)
  %z = f32[] constant(0)
  %b = f32[8,8]{1,0} broadcast(%p1), dimensions={0}
  %d = f32[8,8]{1,0} dot(%p0, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}, algorithm=dot_f32_f32_f32
  %s = f32[2,2]{1,0} slice(%p0), slice={[0:4:2], [2:4:1]}
  %pd = f32[11,9]{1,0} pad(%p0, %z), padding=1_0_1x1_0_0, sharding={replicated}
  %pd2 = f32[9,9]{1,0} pad(%p0, %z), padding=1_0x1_0, sharding={replicated}
  %rw = f32[8,8]{1,0} reduce-window(%p0, %z), window={size=3x3 pad=1_1x1_1}, to_apply=%_
  %cmp = pred[8,8]{1,0} compare(%p0, %b), direction=GT, type=TOTALORDER
  %cc = (f32[8,8]{1,0}, f32[8]{0}) custom-call(%p0, %p1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2, operand_precision={high,default}, padding_type=PADDING_SAME, custom_call_target="a\"b\'c\n", operand_layout_constraints={f32[8,8]{1,0}, f32[8]{0}}, custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (0, {})}, schedule=SCHEDULE_LATEST, api_version=API_VERSION_TYPED_FFI, backend_config={a=1}
  %ar = f32[8,8]{1,0} all-reduce(%p0), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%_.1
  %ag = f32[16,8]{1,0} all-gather(%p0), channel_id=1, replica_groups=[2,2]<=[4], dimensions={0}
  %rs = f32[4,8]{1,0} reduce-scatter(%p0), channel_id=1, replica_groups=[2,2]<=[4], use_global_device_ids=true, dimensions={0}, to_apply=%_.2
  %cp = f32[8,8]{1,0} collective-permute(%p0), channel_id=3, source_target_pairs={{0,1},{1,0}}
  %a2a = f32[8,8]{1,0} all-to-all(%p0), replica_groups={{0,1}}, dimensions={0}
  %bn = (f32[8,8]{1,0}, f32[8]{0}, f32[8]{0}) batch-norm-training(%p0, %p1, %p1), epsilon=0.001, feature_index=1
  %g = f32[8,1]{1,0} gather(%p0, %z2), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1}, indices_are_sorted=true
  %srt = (f32[8,8]{1,0}, s32[8,8]{1,0}) sort(%p0, %io), dimensions={1}, is_stable=true, to_apply=%_.3
  %fu = f32[8,8]{1,0} fusion(%p0), kind=kLoop, calls=%_.4
  %ca = f32[8,8]{1,0} call(%p0), to_apply=%_.5, is_composite=true, frontend_attributes={composite.name="a"}
  %ex = f32[8,8]{1,0} exponential(%p0), result_accuracy={mode=highest}
  %tk = (f32[8,3]{1,0}, s32[8,3]{1,0}) topk(%p0), k=3, largest=false
  %iot = f32[8,8]{1,0} iota(), iota_dimension=1
  %cv = f32[8,6,6,4]{3,2,1,0} convolution(%x4, %k4), window={size=3x3 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f, operand_precision={high,default}
  %mp = f32[8]{0} map(%p1), dimensions={0}, to_apply=%_.6
  %fft = c64[8]{0} fft(%cz), fft_type=FFT, fft_length={8}
  %ts = f32[8,8]{1,0} triangular-solve(%p0, %b), left_side=true, lower=true, unit_diagonal=true, transpose_a=ADJOINT
  %ch = f32[8,8]{1,0} cholesky(%p0), lower=true
  %rp = f32[8,8]{1,0} reduce-precision(%p0), exponent_bits=5, mantissa_bits=10
  %rbg = (u64[2]{0}, u32[4]{0}) rng-bit-generator(%st), algorithm=rng_three_fry
  %rn = f32[8]{0} rng(%z, %z), distribution=rng_uniform
  %sas = f32[8,8]{1,0} select-and-scatter(%p0, %p0, %z), window={size=1x1}, select=%_.7, scatter=%_.8
  %tr = f32[8,8]{1,0} transpose(%p0), dimensions={1,0}
  %cat = f32[16,8]{1,0} concatenate(%p0, %b), dimensions={0}
  %sc = f32[8,8]{1,0} scatter(%p0, %z2, %upd), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, unique_indices=true, to_apply=%_.9
  %ds = f32[2,2]{1,0} dynamic-slice(%p0, %s0, %s0), dynamic_slice_sizes={2,2}
  ROOT %t = () tuple()
}
"#;

const CONTROL: &str = r#"HloModule more, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }, entry_computation_layout={(f32[8]{0}, f32[16,256]{1,0:T(8,128)(2,1)S(1)}, s4[16,256]{1,0:T(8,128)E(4)S(1)}, f32[<=16,256]{1,0:T(8,128)M(16)}, f32[16,256]{1,0:T(*,128)}, /*index=5*/f32[16,256]{1,0:S(5)SC(1:64,128)}, f32[16,256]{1,0:T(8,128)L(1024)}, f32[?,256]{1,0}, pred[], s32[])->(f32[8]{0}, token[])}, replica_count=2, num_partitions=4, frontend_attributes={a="b",c={x=1}}

%add_f (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b)
}

%body (t.1: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t.1 = (s32[], f32[8]{0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%t.1), index=0
  %one = s32[] constant(1)
  %i2 = s32[] add(%i.1, %one)
  %v = f32[8]{0} get-tuple-element(%t.1), index=1
  ROOT %out = (s32[], f32[8]{0}) tuple(%i2, %v)
}

%cond (t: (s32[], f32[8])) -> pred[] {
  %t = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %n = s32[] constant(5)
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}

%br (x.3: f32[8]) -> f32[8] {
  %x.3 = f32[8]{0} parameter(0)
  ROOT %y.3 = f32[8]{0} negate(%x.3)
}

ENTRY %e (p0: f32[8], p1: f32[16,256], p2: s4[16,256], p3: f32[<=16,256], p4: f32[16,256], p5: f32[16,256], p6: f32[16,256], p7: f32[?,256], p8: pred[], p9: s32[]) -> (f32[8], token[]) {
  %p0 = f32[8]{0} parameter(0)
  %p1 = f32[16,256]{1,0:T(8,128)(2,1)S(1)} parameter(1)
  %p2 = s4[16,256]{1,0:T(8,128)E(4)S(1)} parameter(2)
  %p3 = f32[<=16,256]{1,0:T(8,128)M(16)} parameter(3)
  %p4 = f32[16,256]{1,0:T(*,128)} parameter(4)
  %p5 = f32[16,256]{1,0:S(5)SC(1:64,128)} parameter(5)
  %p6 = f32[16,256]{1,0:T(8,128)L(1024)} parameter(6)
  %p7 = f32[?,256]{1,0} parameter(7)
  %p8 = pred[] parameter(8), sharding={maximal device=3}
  %p9 = s32[] parameter(9), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  %tok = token[] after-all()
  %inf = ((f32[8]{0}, s32[]), token[]) infeed(%tok), infeed_config="c\"d"
  %out.1 = token[] outfeed(%p0, %tok), outfeed_shape=f32[8]{0}, outfeed_config="d"
  %snd = (f32[8]{0}, u32[], token[]) send(%p0, %tok), channel_id=15, is_host_transfer=true
  %sd = token[] send-done(%snd), channel_id=15, is_host_transfer=true
  %rcv = (f32[8]{0}, u32[], token[]) recv(%tok), channel_id=16
  %rd = (f32[8]{0}, token[]) recv-done(%rcv), channel_id=16
  %z = s32[] constant(0)
  %tt = (s32[], f32[8]{0}) tuple(%z, %p0)
  %w = (s32[], f32[8]{0}) while(%tt), condition=%cond, body=%body
  %c1 = f32[8]{0} conditional(%p8, %p0, %p0), true_computation=%br, false_computation=%br
  %c2 = f32[8]{0} conditional(%p9, %p0, %p0, %p0), branch_computations={%br, %br, %br}
  %cs = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(%p0), cross_program_prefetch_index=0
  %cd = f32[8]{0} copy-done(%cs)
  %dom = f32[8]{0} domain(%p0), domain={kind="sharding", entry={replicated}, exit={maximal device=1}}
  %gds = s32[] get-dimension-size(%p3), dimensions={0}
  %sds = f32[<=16,256]{1,0} set-dimension-size(%p6, %gds), dimensions={0}
  %tuple.anon = (f32[8]{0}, s32[]) tuple(%p0, %z)
  %bar = (f32[8]{0}, s32[]) opt-barrier(%tuple.anon)
  %adp = f32[8]{0} add-dependency(%p0, %tok)
  %rs = f32[4,2]{1,0} reshape(%p0), metadata={op_name="x" source_line=3}
  %rgus = u64[2]{0} rng-get-and-update-state(), delta=4096
  %pid = u32[] partition-id()
  %rid = u32[] replica-id()
  %pb = pred[8]{0} broadcast(%p8), dimensions={}
  %sel = f32[8]{0} select(%pb, %p0, %p0)
  ROOT %res = (f32[8]{0}, token[]) tuple(%p0, %tok), sharding={{replicated}, {replicated}}, control-predecessors={%sel, %rid}
}
"#;
