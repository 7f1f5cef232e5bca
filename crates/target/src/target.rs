//! The machine.

use serde::{Deserialize, Serialize};
use tilewright_ir::{ElementType, Opcode};

use crate::file::TargetError;
use crate::programs::ProgramTime;
use crate::reductions::Reductions;
use crate::rule::Rule;
use crate::slow_ops::SlowOps;

/// Declares [`Target`]: one row per key of a target file, with what the key
/// means, its type and the values it accepts.
macro_rules! target {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $rule:expr;)*) => {
        /// A vector machine, as far as costs depend on it.
        ///
        /// Every key of a target file but `base` is a field here. Units and sources of
        /// the numbers are in `docs/targets.md`. [`Target::check`] holds for
        /// every target that [`Target::from_toml`] and [`Target::builtin`]
        /// return; call it after changing fields.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[non_exhaustive]
        pub struct Target {
            $($(#[doc = $doc])* pub $name: $type,)*
        }

        impl Target {
            /// Every key of a target file. All are required in a file without `base`.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The values that a key accepts, in the order of [`Self::KEYS`].
            pub(crate) const RULES: &'static [Rule] = &[$($rule),*];

            /// The lines that say what a key means, in the order of [`Self::KEYS`].
            pub(crate) const MEANINGS: &'static [&'static [&'static str]] = &[$(&[$($doc),*]),*];
        }
    };
}

target! {
    /// The name for `--target`.
    name: String = Rule::Text;
    /// Its meaning in one line.
    description: String = Rule::Text;
    /// The layout of arrays in its memory.
    alignment: Alignment = Rule::Alignment;
    /// Lanes of a vector: how far the minor-most dim reaches in one vector.
    /// Need not be a power of two.
    lanes: u32 = Rule::Count(1 << 16);
    /// Rows of a vector: how far the second-minor dim reaches in one vector.
    /// 1 on a machine with plain, one-dimensional vectors.
    sublanes: u32 = Rule::Count(1 << 12);
    /// Bits of one lane in one row: the widest element that fits one.
    lane_bits: u32 = Rule::PowerOfTwo(8, 128);
    /// The narrowest elements that share a lane: `lane_bits` if none do.
    pack_min_bits: u32 = Rule::PowerOfTwo(1, 128);
    /// Vector registers.
    vector_registers: u32 = Rule::Count(1 << 16);
    /// Bytes of on-chip memory that vectors are loaded from.
    vector_memory_bytes: u64 = Rule::Count(1 << 40);
    /// Bytes per cycle between main memory and vector memory, both ways
    /// together.
    hbm_bytes_per_cycle: f64 = Rule::Rate;
    /// Cycles from asking main memory for bytes to the first of them.
    hbm_latency_cycles: f64 = Rule::Cost;
    /// The processors that share the bandwidth of main memory. A sum of columns keeps one busy for
    /// each vector of its results.
    processors: u32 = Rule::Count(1 << 20);
    /// The most elements of a column that one processor adds up: the compiler divides a sum of
    /// longer columns among several by itself.
    longest_column: u64 = Rule::Count(1 << 40);
    /// Whether readers of an array that wait for the same values read it in one pass: sums side
    /// by side, and results beside them. If not, each reads it for itself.
    shares_sweeps: bool = Rule::Flag;
    /// Whether a reduction computes the values that it reads even if others use them, too. If
    /// not, they are stored for the reduction.
    fuses_shared: bool = Rule::Flag;
    /// Whether a kernel that goes from row to row has the sums of its rows, where vector memory holds a
    /// row. If not, what needs them reads the array once more.
    fuses_rows: bool = Rule::Flag;
    /// Whether a slice is computed where it is used, and not stored.
    fuses_slices: bool = Rule::Flag;
    /// Elementwise operations on whole vectors per cycle.
    vector_alu_slots: u32 = Rule::Count(1 << 10);
    /// Vectors loaded from vector memory per cycle.
    load_slots: u32 = Rule::Count(1 << 10);
    /// Vectors stored to vector memory per cycle.
    store_slots: u32 = Rule::Count(1 << 10);
    /// Cycles to move one row of a vector to another place: rotate its lanes,
    /// merge it under a mask. Realigning a vector moves each of its `sublanes` rows.
    lane_move_cycles: f64 = Rule::Cost;
    /// Cycles per vector of a reshape or transpose that moves nothing inside vectors. It is no
    /// work, but it ties the layouts on both sides together, or splits a loop in two, which can
    /// cost a compiler time elsewhere.
    reshape_pin_cycles: f64 = Rule::Cost;
    /// Cycles to reduce a vector across its lanes.
    cross_lane_reduce_cycles: f64 = Rule::Cost;
    /// Cycles to start on a run: adjacent elements in memory that a reduce combines. It is the
    /// cost of short runs on top of their elements.
    reduce_run_cycles: f64 = Rule::Cost;
    /// Cycles per vector of a broadcast along the lanes of a value that is not stored but
    /// recomputed for every element of the result.
    recompute_cycles: f64 = Rule::Cost;
    /// Cycles of an exponential, logarithm, tanh, reciprocal, root or sine of
    /// one vector.
    transcendental_cycles: f64 = Rule::Cost;
    /// Multiplications and additions per cycle of a matrix product.
    matmul_flops_per_cycle: f64 = Rule::Rate;
    /// Whether elementwise operations that only a contraction reads, or that read one, are
    /// computed beside it, while the matrix unit works. If not, their results are stored
    /// for the contraction, and its result for them.
    fuses_contractions: bool = Rule::Flag;
    /// Convolutions of fewer images than this, but of several, are computed with space moved into the batch
    /// (`xla/service/space_to_batch_converter.h`), and so is what reads their results: each sum is a
    /// kernel of its own there, unless a barrier stands before it. 1 if none are.
    space_to_batch_below: u32 = Rule::Count(1 << 20);
    /// The number of arrays that share vector memory: an array of at most this part of its
    /// bytes stays there between its producer and its readers, since many are live at once.
    on_chip_arrays: u32 = Rule::Count(1 << 16);
    /// The least number of elements for which elementwise operations are left to the library of
    /// the reductions, if `fuses_shared` is false.
    library_elements: u64 = Rule::Count(1 << 40);
    /// The ratio from which a value is small beside another: if the other is recomputed, it is
    /// read instead, and may be broadcast again.
    small_part: u32 = Rule::Count(1 << 16);
    /// The most instructions that are recomputed for one reduction.
    most_rematerialized: u32 = Rule::Count(1 << 16);
    /// Cycles for which devices wait for each other in a round of communication, however little
    /// they exchange.
    round_cycles: f64 = Rule::Cost;
    /// Bytes that one device exchanges with others per cycle.
    link_bytes_per_cycle: f64 = Rule::Rate;
    /// Cycles of a branch on a value that the machine has computed: what a guard takes that holds.
    /// 0 if no sums are guarded.
    guard_cycles: f64 = Rule::Cost;
    /// Whether the machine computes in f64 what devices exchange.
    has_f64: bool = Rule::Flag;
    /// Cycles in a nanosecond.
    cycles_per_ns: f64 = Rule::Rate;
    /// How many times as many cycles a module must take before it is rewritten as after. Less is
    /// within the model's error, and a backend fuses the forms that it recognises.
    least_gain: f64 = Rule::Factor;
    /// The same for a module without loops that saves fewer than `small_saving_cycles`.
    least_small_gain: f64 = Rule::Factor;
    /// Cycles of which no measurement tells whether a rewrite saves them: what starting the kernels
    /// of a module takes changes by as much.
    small_saving_cycles: f64 = Rule::Cost;
    /// The factor within which the modelled ratio of a module's times, before and after, was that
    /// of the engine for nine in ten programs: measured, or estimated by its compiler.
    ratio_error: f64 = Rule::Factor;
    /// The measured times of reductions, form by form.
    reductions: Reductions = Rule::Reductions;
    /// The measured times of programs that kernels of this CPU compute in one call.
    programs: Vec<ProgramTime> = Rule::Programs;
    /// The ops that it is slow at, or the size from which on it is slow to make arrays, with what helps. Such ops cost
    /// at least `times` times as much as a copy of their bytes.
    slow_ops: Vec<SlowOps> = Rule::SlowOps;
}

/// The layout of arrays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Alignment {
    /// One element after the other: a reshape is free.
    None,
    /// In whole vectors: the two minor dims are padded to rows and lanes.
    Tiles,
}

/// The built-in files: engines that programs are compiled by, and machines that are simulated.
const BUILTIN: &[(&str, &str)] = &[
    ("linear", include_str!("../machines/linear.toml")),
    ("mlu-like", include_str!("../machines/mlu-like.toml")),
    ("tpu-like", include_str!("../machines/tpu-like.toml")),
    ("tpu-v5e", include_str!("../engines/tpu-v5e.toml")),
    ("xla-cpu-0.10", include_str!("../engines/xla-cpu-0.10.toml")),
    (NEWEST_CPU, include_str!("../engines/xla-cpu-0.12.toml")),
    ("xla-cpu-0.9", include_str!("../engines/xla-cpu-0.9.toml")),
    ("xla-gpu-h100", include_str!("../engines/xla-gpu-h100.toml")),
];

/// The engine that [`CPU`] stands for.
const NEWEST_CPU: &str = "xla-cpu-0.12";
/// The short name of the newest XLA:CPU.
const CPU: &str = "cpu";

/// Returns the file of the built-in target of this name.
fn builtin_text(name: &str) -> Result<&'static str, TargetError> {
    let name = if name == CPU { NEWEST_CPU } else { name };
    let found = BUILTIN.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| TargetError::unknown(name))
}

impl Target {
    /// Returns what is known of an op that the engine is slow at.
    pub fn slow_op(&self, opcode: Opcode) -> Option<&SlowOps> {
        self.slow_ops.iter().find(|slow| slow.ops.iter().any(|op| op == opcode.name()))
    }

    /// Returns the bytes of the largest array that stays in vector memory between its producer
    /// and its readers.
    pub fn on_chip_bytes(&self) -> u64 {
        self.vector_memory_bytes / u64::from(self.on_chip_arrays.max(1))
    }

    /// The machine on which modules are simulated if none is named.
    pub const DEFAULT: &'static str = "tpu-like";

    /// Returns the names that [`Target::builtin`] knows, in alphabetical order.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        std::iter::once(CPU).chain(BUILTIN.iter().map(|(name, _)| *name))
    }

    /// The built-in target of this name.
    ///
    /// # Errors
    /// Returns an error if no built-in target has this name; the message lists their names.
    pub fn builtin(name: &str) -> Result<Self, TargetError> {
        let target = Self::from_toml(builtin_text(name)?)?;
        Ok(Self { name: name.to_owned(), ..target })
    }

    /// Bytes of a vector.
    pub fn vector_bytes(&self) -> u64 {
        (self.vector_bits() / 8).max(1)
    }

    pub(crate) fn vector_bits(&self) -> u64 {
        self.tile(self.lane_bits).iter().product::<u64>().saturating_mul(self.lane_bits.into())
    }

    /// Returns how many elements of this many bits share a lane of a row: 1 for those as wide
    /// as a lane or wider, 2 for 16-bit elements in 32-bit lanes.
    pub fn packing(&self, element_bits: u32) -> u32 {
        (self.lane_bits / self.stored_bits(element_bits)).max(1)
    }

    /// Bits that an element of this many takes in a vector: the next power of
    /// two, but no less than the narrowest packed width.
    pub(crate) fn stored_bits(&self, element_bits: u32) -> u32 {
        let bits = element_bits.max(self.pack_min_bits).max(1);
        bits.checked_next_power_of_two().unwrap_or(bits)
    }

    /// Returns the rows and lanes of the tile in which elements of this many bits are stored:
    /// 8x128 on `tpu-like`, 16x128 for 16-bit elements. Its bytes are those of one vector, or
    /// of several if elements are wider than a lane.
    pub fn tile(&self, element_bits: u32) -> [u64; 2] {
        let rows =
            u64::from(self.sublanes.max(1)).saturating_mul(self.packing(element_bits).into());
        [rows, self.lanes.max(1).into()]
    }

    /// Returns the number of elements of a type in one vector; 1 if they are wider than it.
    pub fn vector_elements(&self, element_type: ElementType) -> u64 {
        let bits = self.stored_bits(element_type.bytes().saturating_mul(8));
        (self.vector_bits() / u64::from(bits)).max(1)
    }

    /// Returns the number of vectors for this many elements of a type.
    pub fn vectors_for(&self, element_type: ElementType, elements: u64) -> u64 {
        let bits = self.stored_bits(element_type.bytes().saturating_mul(8));
        let bits = u128::from(elements).saturating_mul(bits.into());
        let vectors = bits.div_ceil(self.vector_bits().max(1).into());
        u64::try_from(vectors).unwrap_or(u64::MAX)
    }

    /// Cycles to realign one vector. Its rows come from different places of
    /// different vectors, so that each is moved by itself.
    pub fn realign_cycles(&self) -> f64 {
        f64::from(self.sublanes) * self.lane_move_cycles
    }
}
