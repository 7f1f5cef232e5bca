//! Tests the rules of the machine, each broken once, and its costs, counted by hand.

use tilewright_ir::{Data, ElementType, Op, Opcode};
use tilewright_lower::kernel::parse;
use tilewright_sim::{Arithmetic, Fault, Lane, Lanes, Machine, Memory, Ran, Violation};
use tilewright_target::Target;

/// Sums of `f32`, which is all that these kernels need.
#[derive(Debug)]
struct Sums;

impl Arithmetic for Sums {
    fn prepare(
        &self,
        op: &Op,
        operands: &[ElementType],
        _result: ElementType,
    ) -> Option<Box<dyn Lanes>> {
        let sums = op.opcode() == Opcode::Add && operands == [ElementType::F32; 2];
        sums.then(|| Box::new(Self) as Box<dyn Lanes>)
    }
}

impl Lanes for Sums {
    fn compute(&self, operands: &[&Data], lanes: usize, out: &mut Data) -> bool {
        let (Data::F32(a), Data::F32(b)) = (operands[0], operands[1]) else { return false };
        *out = Data::F32(a.iter().zip(b).take(lanes).map(|(a, b)| a + b).collect());
        true
    }
}

/// Returns two rows of four lanes; a copy of 16 bytes takes a cycle, after ten.
fn small() -> Target {
    let mut target = Target::builtin("tpu-like").unwrap();
    target.name = "small".to_owned();
    target.lanes = 4;
    target.sublanes = 2;
    target.vector_registers = 4;
    target.vector_memory_bytes = 1024;
    target.hbm_bytes_per_cycle = 16.0;
    target.hbm_latency_cycles = 10.0;
    target
}

const HEADER: &str = "kernel k for small
in x: f32[32]
out y: f32[32]
vmem xs: f32[16] twice
vmem ys: f32[32]
fn add(a: f32, b: f32) {
  c: f32 = add a, b
  return c
}
{
";

fn run(body: &str) -> Result<Ran, Violation> {
    let text = format!("{HEADER}{body}}}\n");
    let kernel = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let x: Vec<f32> = (0u8..32).map(f32::from).collect();
    Machine::new(&small(), &Sums)
        .with_max_steps(1000)
        .run(&kernel, vec![Memory::written(Data::F32(x))])
}

fn broken(body: &str) -> (usize, Fault) {
    let violation = run(body).expect_err(body);
    assert_eq!(violation.kernel, "k");
    (violation.line, violation.fault)
}

#[test]
fn parts_are_within_registers() {
    let body = "  a: f32 x 16 = splat 1.0\n  for i in 3 {\n    b: f32 x 8 = part i of a\n  }\n";
    assert_eq!(broken(body), (13, Fault::Unsound("a register has no such part")));
}

#[test]
fn parts_are_cut_from_registers() {
    let body = "  copy ys[0] <- x[0] of 16\n  wait ys\n  a: f32 x 16 = load ys[0]\n  for i in 2 {\n    b: f32 x 8 = part i of a\n    store ys[16 - 8*i] = b\n  }\n  copy y[0] <- ys[0] of 32\n";
    let ran = run(body).unwrap();
    let Data::F32(y) = ran.outputs[0].data() else { panic!("of another type") };
    let expected: Vec<f32> = (0u8..8).chain(8..16).chain(0..8).map(f32::from).collect();
    assert_eq!(y[..24], expected);
}

#[test]
fn vectors_begin_on_vector_boundaries() {
    let body = "  copy ys[0] <- x[0] of 32\n  wait ys\n  for i in 2 {\n    a: f32 x 8 = load ys[4*i]\n  }\n";
    let fault = Fault::Misaligned { buffer: "ys".into(), address: 4, unit: 8 };
    assert_eq!(broken(body), (14, fault));
    let store = "  a: f32 x 8 = splat 1.0\n  store ys[2] = a where p%8 == 0\n";
    let fault = Fault::Misaligned { buffer: "ys".into(), address: 2, unit: 8 };
    assert_eq!(broken(store), (12, fault));
    // Half a vector does not end on a boundary.
    let half = "  a: f32 x 4 = splat 1.0\n  store ys[0] = a\n";
    assert!(matches!(broken(half), (12, Fault::Misaligned { .. })));
}

#[test]
fn addresses_are_within_their_buffer() {
    let body = "  a: f32 x 8 = splat 1.0\n  for i in 5 {\n    store ys[8*i] = a\n  }\n";
    let fault = Fault::OutOfBounds { buffer: "ys".into(), address: 39, len: 32 };
    assert_eq!(broken(body), (13, fault));
    let copy = "  copy ys[0] <- x[8] of 32\n";
    assert_eq!(broken(copy), (11, Fault::OutOfBounds { buffer: "x".into(), address: 39, len: 32 }));
    let before = "  copy ys[0 - 8] <- x[0] of 8\n";
    assert_eq!(
        broken(before),
        (11, Fault::OutOfBounds { buffer: "ys".into(), address: -8, len: 32 })
    );
    let masked = "  a: f32 x 8 = splat 1.0\n  store ys[32] = a where p%8 == 3\n";
    assert_eq!(
        broken(masked),
        (12, Fault::OutOfBounds { buffer: "ys".into(), address: 35, len: 32 })
    );
    // Positions outside the mask are not written.
    assert!(run("  a: f32 x 8 = splat 1.0\n  store ys[32] = a where p%8 in 0..0\n").is_ok());
}

#[test]
fn memory_is_poison_until_it_is_written() {
    let fault = |address| Fault::Uninitialised { buffer: "ys".into(), address };
    assert_eq!(broken("  a: f32 x 8 = load ys[8]\n"), (11, fault(8)));
    assert_eq!(broken("  a: f32 x 8 = scalar ys[5]\n"), (11, fault(5)));
    let partly =
        "  a: f32 x 8 = splat 1.0\n  store ys[0] = a where p%8 in 0..6\n  a = load ys[0]\n";
    assert_eq!(broken(partly), (13, fault(6)));
    let masked = partly.replace("load ys[0]", "load ys[0] where p%8 in 0..6 else 0.0");
    assert!(run(&masked).is_ok());
    // A stream leaves no trace of the block before.
    let stream = "  stream xs <- x[0] of 16 - 8*n for n in 2 {\n    a: f32 x 8 = load xs[8]\n  }\n";
    assert_eq!(broken(stream), (12, Fault::Uninitialised { buffer: "xs".into(), address: 8 }));
}

#[test]
fn what_is_copied_is_left_alone() {
    let read = "  copy ys[0] <- x[0] of 16\n  a: f32 x 8 = load ys[8]\n";
    assert_eq!(broken(read), (12, Fault::Race { buffer: "ys".into(), address: 8 }));
    let write = "  a: f32 x 8 = splat 1.0\n  store ys[0] = a\n  copy y[0] <- ys[0] of 8\n  store ys[0] = a\n";
    assert_eq!(broken(write), (14, Fault::Race { buffer: "ys".into(), address: 0 }));
    // Reading the source of a copy, and writing beside it, are no race.
    let beside =
        write.replace("  store ys[0] = a\n  copy", "  store ys[0] = a\n  a = load ys[0]\n  copy");
    let beside =
        format!("{}  store ys[8] = a\n", beside.strip_suffix("  store ys[0] = a\n").unwrap());
    assert!(run(&beside).is_ok());
}

#[test]
fn memory_and_registers_are_limited() {
    let small = small();
    let too_large = format!("{HEADER}}}\n").replace("ys: f32[32]", "ys: f32[256]");
    let kernel = parse(&too_large).unwrap();
    let x = || vec![Memory::poisoned(ElementType::F32, 32)];
    let violation = Machine::new(&small, &Sums).run(&kernel, x()).unwrap_err();
    // 2 * 16 and 256 elements of four bytes.
    assert_eq!(violation.fault, Fault::OverCapacity { bytes: 1152, has: 1024 });
    let five = "  a: f32 x 8 = splat 1.0\n  b: f32 x 32 = splat 2.0\n  store ys[0] = b\n  store ys[0] = a\n";
    assert_eq!(broken(five), (1, Fault::OutOfRegisters { used: 5, has: 4 }));
    let violation = Machine::new(&small, &Sums).run(&kernel, Vec::new()).unwrap_err();
    assert!(matches!(violation.fault, Fault::OverCapacity { .. }));
    let endless = format!("{HEADER}}}\n").replace("y: f32[32]", "y: f32[4611686018427387904]");
    let violation = Machine::new(&small, &Sums).run(&parse(&endless).unwrap(), x()).unwrap_err();
    let fault = Fault::MainMemory { bytes: u64::MAX, limit: 16 << 30 };
    assert_eq!(violation.fault, fault);
    let kernel = parse(&format!("{HEADER}}}\n")).unwrap();
    let violation = Machine::new(&small, &Sums).with_max_bytes(255).run(&kernel, x()).unwrap_err();
    assert_eq!(violation.fault, Fault::MainMemory { bytes: 256, limit: 255 });
    let violation = Machine::new(&small, &Sums).run(&kernel, Vec::new()).unwrap_err();
    assert_eq!(violation.fault, Fault::Input { index: 0, buffer: "x".into(), wanted: 32 });
}

#[test]
fn what_nobody_computes_and_what_never_ends_is_told() {
    let product = "  a: f32 x 8 = splat 2.0\n  a = multiply a, a\n";
    assert_eq!(broken(product), (12, Fault::NoArithmetic("multiply")));
    let long = "  for i in 100000000000 {\n    a: f32 x 8 = splat 2.0\n  }\n";
    assert_eq!(broken(long), (12, Fault::TooLong(1000)));
    let unset = "  for i in 0 {\n    a: f32 x 8 = splat 2.0\n  }\n  store ys[0] = a\n";
    assert!(matches!(broken(unset), (14, Fault::Unsound(_))));
}

#[test]
fn violations_name_kernel_line_and_address() {
    let told = run("  a: f32 x 8 = load ys[8]\n").unwrap_err().to_string();
    assert_eq!(told, "kernel k, line 11: ys[8] is read before it is written");
}

#[test]
fn a_fold_gives_its_result_to_every_position() {
    let ran = run("  copy ys[0] <- x[0] of 8
  wait ys
  a: f32 x 8 = load ys[0]
  b: f32 x 8 = fold p%4 by add of a
  store ys[8] = b
  b = fold p/4%2 by add of a
  store ys[16] = b
  b = spread p%4 at 2 of a
  store ys[24] = b
  copy y[0] <- ys[0] of 32
")
    .unwrap();
    // 0 1 2 3 / 4 5 6 7
    let expected: [f32; 24] = [
        6.0, 6.0, 6.0, 6.0, 22.0, 22.0, 22.0, 22.0, //
        4.0, 6.0, 8.0, 10.0, 4.0, 6.0, 8.0, 10.0, //
        2.0, 2.0, 2.0, 2.0, 6.0, 6.0, 6.0, 6.0,
    ];
    assert_eq!(ran.outputs[0].data().as_slice::<f32>().unwrap()[8..], expected);
}

/// 0 1 2 3 / 4 5 6 7 in two vectors of eight: elements are turned, moved and left in place.
#[test]
fn a_gather_takes_elements_from_anywhere() {
    let with = |gather: &str| {
        let body = format!(
            "  copy ys[0] <- x[0] of 16\n  wait ys\n  a: f32 x 8 = {gather}\n  store ys[16] = a\n  copy y[0] <- ys[16] of 8\n"
        );
        let ran = run(&body).unwrap();
        let y = ran.outputs[0].data().as_slice::<f32>().unwrap()[..8].to_vec();
        (y, ran.counters.realign_ops, ran.counters.cycles)
    };
    // 16 elements are sent in 4 cycles, and 8 in 2, each after 10; the store takes one.
    let base = 14.0 + 12.0 + 1.0;
    // Nothing moves: a load, which takes less than the store.
    assert_eq!(with("gather ys[p + 8]"), ((8u8..16).map(f32::from).collect(), 0, base));
    // All elements move by four places: one move, as long as the store.
    let y = vec![4.0, 5.0, 6.0, 7.0, 0.0, 1.0, 2.0, 3.0];
    assert_eq!(with("gather ys[(p + 4)%8]"), (y, 1, base));
    // Two rows, from two vectors, each by another distance: two moves, one more.
    let y = vec![4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0];
    assert_eq!(with("gather ys[p + 4]"), (y, 1, base + 1.0));
    // One row everywhere is one move.
    let y = vec![8.0, 9.0, 10.0, 11.0, 8.0, 9.0, 10.0, 11.0];
    assert_eq!(with("gather ys[8 + p%4]"), (y, 1, base));
    // Columns of four rows: two rows are written, and eight elements turned, four at a time.
    let y = vec![0.0, 4.0, 8.0, 12.0, 1.0, 5.0, 9.0, 13.0];
    assert_eq!(with("gather ys[4*(p%4) + p/4]"), (y, 1, base + 1.0));
    // Positions outside the mask are not read.
    let y = vec![-1.0, -1.0, -1.0, -1.0, 3.0, 2.0, 1.0, 0.0];
    assert_eq!(with("gather ys[7 - 1*p] where p/4%2 == 1 else -1.0"), (y, 1, base));
}

#[test]
fn gathers_keep_to_the_rules() {
    let broken_by = |gather: &str| {
        broken(&format!("  copy ys[0] <- x[0] of 16\n  wait ys\n  a: f32 x 8 = {gather}\n"))
    };
    let outside = Fault::OutOfBounds { buffer: "ys".into(), address: 35, len: 32 };
    assert_eq!(
        broken_by("gather ys[4*p]"),
        (13, Fault::Uninitialised { buffer: "ys".into(), address: 16 })
    );
    assert_eq!(
        broken_by("gather ys[28 + p]").1,
        Fault::OutOfBounds { buffer: "ys".into(), address: 32, len: 32 }
    );
    assert_eq!(broken_by("gather ys[7*p] where p%8 == 5 else 0.0").1, outside);
    let race = "  copy ys[0] <- x[0] of 16\n  a: f32 x 8 = gather ys[p]\n";
    assert_eq!(broken(race).1, Fault::Race { buffer: "ys".into(), address: 0 });
}

#[test]
fn streams_copy_runs() {
    let body = "  stream xs[8*q] <- x[8*q + 16*n] of 4 each q in 2 for n in 2 {
    a: f32 x 8 = gather xs[p%4 + 8*(p/4)]
    store ys[8*n] = a
  }
  copy y[0] <- ys[0] of 16
";
    let ran = run(body).unwrap();
    let expected: Vec<f32> = [0u8, 1, 2, 3, 8, 9, 10, 11].map(f32::from).to_vec();
    let second: Vec<f32> = expected.iter().map(|x| x + 16.0).collect();
    assert_eq!(ran.outputs[0].data().as_slice::<f32>().unwrap()[..16], [expected, second].concat());
    // Each block has two runs of four elements.
    assert_eq!(ran.counters.hbm_read_bytes, 2 * 2 * 16);
    // The memory between the runs is poison.
    let between = body.replace("gather xs[p%4 + 8*(p/4)]", "load xs[0]");
    assert_eq!(broken(&between), (12, Fault::Uninitialised { buffer: "xs".into(), address: 4 }));
}

/// Two blocks of 64 bytes: each takes 4 cycles to send, after 10.
#[test]
fn copies_run_beside_the_core() {
    let body = "  stream xs <- x[16*n] of 16 for n in 2 {
    a: f32 x 8 = load xs[0]
    b: f32 x 8 = load xs[8]
    a = call add of a, b
    store ys[8*n] = a
  }
  copy y[0] <- ys[0] of 16
";
    let ran = run(body).unwrap();
    let counters = ran.counters;
    assert_eq!(counters.hbm_read_bytes, 128);
    assert_eq!(counters.hbm_write_bytes, 64);
    assert_eq!(counters.vmem_peak_bytes, (2 * 16 + 32) * 4);
    // Two loads, a sum and a store, twice.
    assert_eq!(counters.vector_ops, 8);
    // The first block is there at 14, the second at 18: 4 cycles to send it behind
    // the first. A block keeps the store unit, the busiest, for a cycle, and so does
    // two loads the two load slots. At 19 the results are sent: 4 cycles and 10.
    assert_eq!(counters.cycles, 19.0 + 14.0);
    let copies: Vec<(f64, f64)> =
        ran.events.iter().filter(|e| e.lane == Lane::Copies).map(|e| (e.from, e.to)).collect();
    assert_eq!(copies, [(0.0, 14.0), (4.0, 18.0), (19.0, 33.0)]);
}
