//! Reports on the arrays that a module holds in memory.

mod advice;
mod blocks;
mod text;

use serde::Serialize;
use tilewright_ir::{InstId, Module, Op, Verified};
use tilewright_rewrite::analysis::sharding::DeviceMesh;
use tilewright_rewrite::cost::{MemoryUse, StoredArray, memory_use};
use tilewright_rewrite::{Options, Place};
use tilewright_target::Target;

use crate::error::Error;
use crate::pipeline::{optimize, simplest_forms};

use super::meaning;

/// The arrays that a module keeps in memory on a target, and when it holds most. `Display` shows the largest.
///
/// A model: values that are computed where they are used take no memory, all others are kept from the instruction
/// that makes them to the last one that needs them, arguments throughout. Instructions run in the order of the
/// module, while a compiler may choose another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryReport {
    /// The module's name.
    pub module: String,
    /// The target's name.
    pub target: String,
    /// The number of devices over which the module is divided; `null` if it is not. All bytes are those of one
    /// device.
    pub devices: Option<i64>,
    /// When the module holds most.
    pub peak: MemoryPeak,
    /// The number of arrays that count whole in a divided module, since nothing tells how they are divided.
    pub counted_whole: usize,
    /// The arrays that take memory, those at the peak first, the largest first.
    pub arrays: Vec<ArrayMemory>,
    /// Changes that would make the peak smaller.
    pub advice: Vec<String>,
}

/// When a module holds most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryPeak {
    /// The bytes in use, padding included.
    pub padded_bytes: u64,
    /// The bytes of the elements alone.
    pub bytes: u64,
    /// The bytes of the arguments among the padded ones.
    pub argument_bytes: u64,
    /// The instruction that runs then; empty if the module has none.
    pub instruction: String,
    /// Its place, by the framework's names and source lines.
    pub place: String,
}

/// An array in memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrayMemory {
    /// The instruction that makes it.
    pub name: String,
    /// Its op.
    pub opcode: &'static str,
    /// Its effect in words, if it only moves or renames elements; `null` for other ops.
    pub meaning: Option<String>,
    /// The shape, with a layout if the module gives one.
    pub shape: String,
    /// The bytes of the elements.
    pub bytes: u64,
    /// The bytes of memory, padding included.
    pub padded_bytes: u64,
    /// The ratio of the two.
    pub padding: f64,
    /// Whether it is in use when the module holds most.
    pub is_at_peak: bool,
    /// Whether it is an argument of the module.
    pub is_argument: bool,
    /// The framework's name; empty if it has none.
    pub op_name: String,
    /// The file and line in the user's program, `file:line`; `null` if that is not known.
    pub source: Option<String>,
    /// The instructions that read it, in order.
    pub readers: Vec<ArrayReader>,
    /// A change that would make it smaller; `null` if none is known.
    pub advice: Option<String>,
}

/// An instruction that reads an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArrayReader {
    /// Its name.
    pub name: String,
    /// Its op.
    pub opcode: &'static str,
    /// The file and line in the user's program, `file:line`; `null` if that is not known.
    pub source: Option<String>,
}

impl MemoryReport {
    /// Finds what a module holds on a target, in its simplest form, as [`super::CostReport::new`] does.
    ///
    /// # Errors
    /// If a pass has a bug.
    pub fn new(module: &Verified, target: &Target) -> Result<Self, Error> {
        Self::with_options(module, &Options::new(target.clone()))
    }

    /// As [`Self::new`], for the optimiser with these options, which may have a flag that cancels it.
    ///
    /// # Errors
    /// If a pass has a bug, or another thread cancels the optimiser.
    pub fn with_options(module: &Verified, options: &Options) -> Result<Self, Error> {
        let optimized = optimize(module.clone(), options)?;
        let forms = simplest_forms(module, &optimized, options)?;
        Ok(Self::of_forms([&forms[0], &forms[1]], &options.target))
    }

    /// Finds what a module holds, given its simplest forms before and after its optimisation.
    pub fn of_forms([before, after]: [&Module; 2], target: &Target) -> Self {
        let of = Self::of(before, target);
        let saved =
            advice::by_rewriting(of.peak.padded_bytes, memory_use(after, target).peak_bytes);
        let donated = advice::by_donating(before, target, of.peak.padded_bytes);
        Self { advice: saved.into_iter().chain(donated).collect(), ..of }
    }

    fn of(module: &Module, target: &Target) -> Self {
        let found = memory_use(module, target);
        let at_peak = || found.arrays.iter().filter(|array| array.is_alive_at_peak);
        let sum =
            |bytes: fn(&StoredArray) -> u64| at_peak().map(bytes).fold(0, u64::saturating_add);
        let arguments = at_peak().filter(|array| is_argument(module, array.id));
        let place = found.peak_at.last().map(|&id| (module.name_of(id), Place::of(module, id)));
        let (instruction, place) =
            place.map(|(name, place)| (name.to_owned(), place.text)).unwrap_or_default();
        let peak = MemoryPeak {
            padded_bytes: found.peak_bytes,
            bytes: sum(|array| array.footprint.bytes),
            argument_bytes: arguments
                .map(|array| array.footprint.padded_bytes)
                .fold(0, u64::saturating_add),
            instruction,
            place,
        };
        let mut arrays: Vec<ArrayMemory> = found
            .arrays
            .iter()
            .map(|array| ArrayMemory::of(module, target, &found, array))
            .collect();
        arrays.sort_by_key(|array| std::cmp::Reverse((array.is_at_peak, array.padded_bytes)));
        Self {
            module: module.name.to_string(),
            target: target.name.clone(),
            devices: DeviceMesh::of(module).map(|mesh| mesh.devices()),
            peak,
            counted_whole: found.counted_whole,
            arrays,
            advice: Vec::new(),
        }
    }
}

impl ArrayMemory {
    fn of(module: &Module, target: &Target, all: &MemoryUse, array: &StoredArray) -> Self {
        let StoredArray { id, footprint, is_alive_at_peak } = *array;
        let Place { op_name, source, .. } = Place::of(module, id);
        let mut readers: Vec<InstId> = module.uses(id).map(|one| one.user).collect();
        readers.dedup();
        let reader = |id: InstId| ArrayReader {
            name: module.name_of(id).to_owned(),
            opcode: module.opcode(id).name(),
            source: Place::of(module, id).source.map(|(file, line)| format!("{file}:{line}")),
        };
        Self {
            name: module.name_of(id).to_owned(),
            opcode: module.opcode(id).name(),
            meaning: meaning(module, id),
            shape: format!("{:#}", module.shape(id)),
            bytes: footprint.bytes,
            padded_bytes: footprint.padded_bytes,
            padding: footprint.padding(),
            is_at_peak: is_alive_at_peak,
            is_argument: is_argument(module, id),
            op_name: op_name.to_string(),
            source: source.map(|(file, line)| format!("{file}:{line}")),
            advice: advice::on(module, target, all, array),
            readers: readers.into_iter().map(reader).collect(),
        }
    }
}

fn is_argument(module: &Module, id: InstId) -> bool {
    matches!(module.op(id), Op::Parameter(_)) && module.entry() == module.instruction(id).parent()
}
