//! Chains of elementwise ops, run a block of lanes at a time.
//!
//! The *lanes* of arrays are their elements in row-major order. Elementwise ops
//! on as many lanes each form a region: a list of kernels over registers of one
//! block, so that what one op hands the next stays in the fastest memory, and
//! only what others need is written to arrays. Reshapes within a region change
//! nothing, broadcasts into it are read where they lie. Blocks do not depend on
//! each other: any number of threads computes the same.

use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, Data, Dims, ElementType, InstId, Op, Verified};

use crate::error::{Fault, Outcome};
use crate::eval::elementwise::{Kernel, kernel};
use crate::strides::{Level, Nest, extent, row_major};
use crate::value::{alike, with_data};

/// The lanes of a block.
const BLOCK: usize = 2048;
/// Fewer lanes than this are not worth a region.
const LEAST_LANES: usize = 2 * BLOCK;
/// Lanes worth a thread of their own.
const LANES_OF_A_TASK: usize = 16 * BLOCK;
/// The most instructions of a region.
const MOST_MEMBERS: usize = 64;

/// Elementwise instructions that run together.
pub(crate) struct Region {
    pub(crate) lanes: usize,
    /// What is read from outside, in the order of the operands.
    pub(crate) inputs: Vec<Input>,
    actions: Vec<Action>,
    /// What each register holds.
    registers: Vec<ElementType>,
    /// What is written.
    pub(crate) outputs: Vec<Output>,
}

/// An array from outside.
pub(crate) struct Input {
    pub(crate) id: InstId,
    how: Reading,
}

/// How an array from outside is read.
enum Reading {
    /// Lane by lane.
    Lanes,
    /// Its only element for every lane.
    Uniform,
    /// As a walk over its elements.
    Broadcast(Nest<1>),
}

/// An array that a region yields.
pub(crate) struct Output {
    pub(crate) id: InstId,
    pub(crate) element_type: ElementType,
    pub(crate) dims: Dims,
}

/// What is done with each block.
enum Action {
    Load { input: usize, register: usize },
    Compute { kernel: Kernel, inputs: SmallVec<[usize; 3]>, register: usize },
    Store { register: usize, output: usize },
}

/// What an instruction that may be of a region does.
enum Role {
    /// Computes from operands that have as many lanes, or one element.
    Compute,
    /// Has the lanes of its operand.
    Alias,
    /// Repeats a smaller operand.
    Broadcast(Nest<1>),
}

/// Parts of a computation's order: single instructions, and regions where the
/// last of their members stands.
pub(crate) enum Piece {
    One(InstId),
    Together(Vec<InstId>),
}

/// Divides instructions in order into regions and others.
///
/// A region stays open, for instructions of as many lanes, until another
/// instruction needs a value of it: whatever a member needs stands before the
/// last member, and whatever needs a member stands after it.
pub(crate) fn pieces(module: &Verified, order: &[InstId]) -> Vec<Piece> {
    let mut groups: Vec<Vec<InstId>> = Vec::new();
    let mut open: FxHashMap<usize, usize> = FxHashMap::default();
    let mut group_of: FxHashMap<InstId, usize> = FxHashMap::default();
    for &id in order {
        let lanes = candidate(module, id);
        let mut mine = lanes.and_then(|lanes| open.get(&lanes).copied());
        if mine.is_some_and(|group| groups[group].len() >= MOST_MEMBERS) {
            mine = None;
        }
        let joins = lanes.is_some() && joins(module, id, mine, &group_of);
        for operand in module.operands(id) {
            let Some(&group) = group_of.get(operand) else { continue };
            let stays = joins && mine == Some(group) && reads_lanes(module, id, *operand);
            if !stays {
                open.retain(|_, other| *other != group);
                if mine == Some(group) {
                    mine = None;
                }
            }
        }
        let Some(lanes) = lanes.filter(|_| joins) else { continue };
        let group = mine.unwrap_or_else(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        open.insert(lanes, group);
        groups[group].push(id);
        group_of.insert(id, group);
    }
    in_order(order, groups, &group_of)
}

fn in_order(
    order: &[InstId],
    mut groups: Vec<Vec<InstId>>,
    group_of: &FxHashMap<InstId, usize>,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for &id in order {
        match group_of.get(&id) {
            None => pieces.push(Piece::One(id)),
            Some(&group) if groups[group].last() == Some(&id) => {
                pieces.push(Piece::Together(std::mem::take(&mut groups[group])));
            }
            Some(_) => {}
        }
    }
    pieces
}

/// How many lanes an instruction has, if it is one for a region.
fn candidate(module: &Verified, id: InstId) -> Option<usize> {
    let lanes = lanes_of(module, id).filter(|&lanes| lanes >= LEAST_LANES)?;
    role(module, id).map(|_| lanes)
}

/// A reshape, and whatever else only names lanes, is free where it stands alone.
fn joins(
    module: &Verified,
    id: InstId,
    mine: Option<usize>,
    group_of: &FxHashMap<InstId, usize>,
) -> bool {
    match role(module, id) {
        Some(Role::Alias) => {
            let operand = module.operands(id).first();
            mine.is_some() && operand.and_then(|o| group_of.get(o).copied()) == mine
        }
        Some(_) => true,
        None => false,
    }
}

/// Whether an instruction of a region takes its operand lane by lane.
fn reads_lanes(module: &Verified, id: InstId, operand: InstId) -> bool {
    lanes_of(module, id) == lanes_of(module, operand)
}

fn static_shape(module: &Verified, id: InstId) -> Option<&ArrayShape> {
    module.array_shape(id).filter(|shape| shape.is_static())
}

fn lanes_of(module: &Verified, id: InstId) -> Option<usize> {
    usize::try_from(static_shape(module, id)?.num_elements()?).ok()
}

fn role(module: &Verified, id: InstId) -> Option<Role> {
    let shape = static_shape(module, id)?;
    let operands = module.operands(id);
    let first = operands.first().and_then(|&operand| static_shape(module, operand))?;
    match module.op(id) {
        Op::Reshape(_) | Op::Copy => {
            (first.element_type == shape.element_type).then_some(Role::Alias)
        }
        Op::Broadcast(attrs) => {
            let increasing = attrs.dimensions.windows(2).all(|pair| pair[0] < pair[1]);
            if lanes_of(module, id) == lanes_of(module, *operands.first()?) {
                return increasing.then_some(Role::Alias);
            }
            broadcast_walk(first, shape, &attrs.dimensions).map(Role::Broadcast)
        }
        op => {
            let mut types: SmallVec<[ElementType; 3]> = SmallVec::new();
            for &operand in operands {
                let operand_shape = static_shape(module, operand)?;
                let fits = operand_shape.rank() == 0 || operand_shape.dims() == shape.dims();
                types.push(Some(operand_shape.element_type).filter(|_| fits)?);
            }
            let kernel = kernel(op, &types, shape.element_type).ok()?;
            kernel.map(|_| Role::Compute)
        }
    }
}

/// The lanes of a broadcast as a walk over its operand.
fn broadcast_walk(from: &ArrayShape, to: &ArrayShape, dimensions: &[i64]) -> Option<Nest<1>> {
    let strides = row_major(from.dims());
    let mut levels: SmallVec<[Level<1>; 6]> =
        to.dims().iter().map(|&size| Level { size: extent(size), strides: [0] }).collect();
    for (&dim, &stride) in dimensions.iter().zip(&strides) {
        levels.get_mut(usize::try_from(dim).ok()?)?.strides = [stride];
    }
    Some(Nest::new(levels))
}

impl Region {
    /// The kernels of some instructions, of which `needed` are wanted outside.
    pub(crate) fn new(
        module: &Verified,
        members: &[InstId],
        needed: impl Fn(InstId) -> bool,
    ) -> Option<Self> {
        let mut builder = Builder {
            module,
            register_of: FxHashMap::default(),
            region: Self {
                lanes: lanes_of(module, *members.first()?)?,
                inputs: Vec::new(),
                actions: Vec::new(),
                registers: Vec::new(),
                outputs: Vec::new(),
            },
        };
        for &id in members {
            let register = builder.member(id)?;
            builder.register_of.insert(id, register);
            if needed(id) {
                builder.store(id, register)?;
            }
        }
        Some(builder.region.with_few_registers())
    }

    /// The same with registers used again once nothing needs what they hold.
    fn with_few_registers(mut self) -> Self {
        let mut last_use = vec![0; self.registers.len()];
        for (at, action) in self.actions.iter().enumerate() {
            action.for_each_register(|register| last_use[register] = at);
        }
        for action in &self.actions {
            if let Action::Load { input, register } = action
                && matches!(self.inputs[*input].how, Reading::Uniform)
            {
                // Filled once, for all blocks.
                last_use[*register] = usize::MAX;
            }
        }
        let mut place = vec![usize::MAX; self.registers.len()];
        let mut types: Vec<ElementType> = Vec::new();
        let mut free: Vec<usize> = Vec::new();
        for (at, action) in self.actions.iter_mut().enumerate() {
            if let Some(register) = action.made() {
                let element_type = self.registers[register];
                let keeps = last_use[register] == usize::MAX;
                let again = free.iter().position(|&place| !keeps && types[place] == element_type);
                place[register] = again.map_or(types.len(), |at| free.swap_remove(at));
                if place[register] == types.len() {
                    types.push(element_type);
                }
            }
            let mut ended: SmallVec<[usize; 4]> = SmallVec::new();
            action.for_each_register(|register| {
                if last_use[register] == at && !ended.contains(&register) {
                    ended.push(register);
                }
            });
            action.rename(&place);
            free.extend(ended.into_iter().map(|register| place[register]));
        }
        self.registers = types;
        self
    }

    /// How many elements of each lane it computes.
    pub(crate) fn work(&self) -> usize {
        self.actions.iter().filter(|a| matches!(a, Action::Compute { .. })).count().max(1)
    }

    /// Computes the outputs into `out`, which has as many lanes of each, of
    /// the arrays in the order of [`Region::inputs`].
    pub(crate) fn run(&self, inputs: &[&Data], out: &mut [Data]) -> Outcome<()> {
        let task = LANES_OF_A_TASK.min(self.lanes.max(1));
        let mut tasks: Vec<Vec<Part<'_>>> = Vec::new();
        tasks.resize_with(self.lanes.div_ceil(task), Vec::new);
        for data in out {
            for (parts, part) in tasks.iter_mut().zip(Part::split(data, task)) {
                parts.push(part);
            }
        }
        let first = |task_number: usize| task_number * task;
        if let [only] = tasks.as_mut_slice() {
            return self.run_task(inputs, 0, only);
        }
        let numbered: Vec<_> = tasks.into_iter().enumerate().collect();
        numbered
            .into_par_iter()
            .try_for_each(|(number, mut parts)| self.run_task(inputs, first(number), &mut parts))
    }

    /// Computes the lanes from `first` on that fit the parts.
    fn run_task(&self, inputs: &[&Data], first: usize, out: &mut [Part<'_>]) -> Outcome<()> {
        let lanes = out.first().map_or(0, Part::len);
        let mut registers: Vec<Data> =
            self.registers.iter().map(|&element_type| Data::zeros(element_type, 0)).collect();
        for block in (0..lanes).step_by(BLOCK) {
            let count = BLOCK.min(lanes - block);
            for action in &self.actions {
                match action {
                    Action::Load { input, register } => {
                        let register = &mut registers[*register];
                        self.load(inputs, *input, first + block, count, register)?;
                    }
                    Action::Compute { kernel, inputs, register } => {
                        let mut result =
                            std::mem::replace(&mut registers[*register], Data::Pred(Vec::new()));
                        {
                            let operands = inputs.iter().map(|&input| &registers[input]);
                            let operands: SmallVec<[&Data; 3]> = operands.collect();
                            kernel(&operands, count, &mut result)?;
                        }
                        registers[*register] = result;
                    }
                    Action::Store { register, output } => {
                        out[*output].write(block, count, &registers[*register])?;
                    }
                }
            }
        }
        Ok(())
    }

    fn load(
        &self,
        inputs: &[&Data],
        input: usize,
        first: usize,
        count: usize,
        register: &mut Data,
    ) -> Outcome<()> {
        let missing = Fault::Internal("an input of a region is missing");
        let (Some(data), Some(input)) = (inputs.get(input), self.inputs.get(input)) else {
            return Err(missing);
        };
        with_data!(register, out => {
            let values = alike(out, data)?;
            match &input.how {
                Reading::Lanes => {
                    out.clear();
                    out.extend_from_slice(values.get(first..first + count).ok_or(missing)?);
                }
                Reading::Uniform => {
                    if out.len() < count {
                        out.resize(BLOCK, *values.first().ok_or(missing)?);
                    }
                }
                Reading::Broadcast(walk) => {
                    out.clear();
                    walk.extend_part(out, values, first, count);
                }
            }
        });
        Ok(())
    }
}

impl Action {
    fn for_each_register(&self, mut f: impl FnMut(usize)) {
        match self {
            Self::Load { register, .. } | Self::Store { register, .. } => f(*register),
            Self::Compute { inputs, register, .. } => {
                inputs.iter().copied().for_each(&mut f);
                f(*register);
            }
        }
    }

    /// The register that it fills.
    fn made(&self) -> Option<usize> {
        match self {
            Self::Load { register, .. } | Self::Compute { register, .. } => Some(*register),
            Self::Store { .. } => None,
        }
    }

    fn rename(&mut self, place: &[usize]) {
        match self {
            Self::Load { register, .. } | Self::Store { register, .. } => {
                *register = place[*register];
            }
            Self::Compute { inputs, register, .. } => {
                inputs
                    .iter_mut()
                    .chain([register])
                    .for_each(|register| *register = place[*register]);
            }
        }
    }
}

/// A region while it is made.
struct Builder<'m> {
    module: &'m Verified,
    region: Region,
    register_of: FxHashMap<InstId, usize>,
}

impl Builder<'_> {
    fn register(&mut self, element_type: ElementType) -> usize {
        self.region.registers.push(element_type);
        self.region.registers.len() - 1
    }

    /// The register with the value of a member.
    fn member(&mut self, id: InstId) -> Option<usize> {
        let operands = self.module.operands(id);
        match role(self.module, id)? {
            Role::Alias => self.lanes(*operands.first()?),
            Role::Broadcast(walk) => {
                let operand = *operands.first()?;
                let single = lanes_of(self.module, operand) == Some(1);
                let how = if single { Reading::Uniform } else { Reading::Broadcast(walk) };
                self.load(operand, how)
            }
            Role::Compute => {
                let shape = static_shape(self.module, id)?;
                let mut types: SmallVec<[ElementType; 3]> = SmallVec::new();
                let mut inputs = SmallVec::new();
                for &operand in operands {
                    types.push(static_shape(self.module, operand)?.element_type);
                    inputs.push(self.lanes(operand)?);
                }
                let kernel = kernel(self.module.op(id), &types, shape.element_type).ok()??;
                let register = self.register(shape.element_type);
                self.region.actions.push(Action::Compute { kernel, inputs, register });
                Some(register)
            }
        }
    }

    /// The register with the lanes of an operand: of a member, or from outside.
    fn lanes(&mut self, operand: InstId) -> Option<usize> {
        if let Some(&register) = self.register_of.get(&operand) {
            return Some(register);
        }
        let lanes = lanes_of(self.module, operand)?;
        let how = if lanes == self.region.lanes { Reading::Lanes } else { Reading::Uniform };
        let register = self.load(operand, how)?;
        self.register_of.insert(operand, register);
        Some(register)
    }

    fn load(&mut self, id: InstId, how: Reading) -> Option<usize> {
        let register = self.register(static_shape(self.module, id)?.element_type);
        let input = self.region.inputs.len();
        self.region.inputs.push(Input { id, how });
        self.region.actions.push(Action::Load { input, register });
        Some(register)
    }

    fn store(&mut self, id: InstId, register: usize) -> Option<()> {
        let shape = static_shape(self.module, id)?;
        let (element_type, dims) = (shape.element_type, shape.dims().into());
        let output = self.region.outputs.len();
        self.region.outputs.push(Output { id, element_type, dims });
        self.region.actions.push(Action::Store { register, output });
        Some(())
    }
}

/// Declares the mutable part of an array, for each storage.
macro_rules! parts {
    ($($name:ident $type:ty;)*) => {
        /// Some of an array's lanes, to be written.
        enum Part<'a> {
            $($name(&'a mut [$type]),)*
        }

        impl<'a> Part<'a> {
            /// An array in parts of so many lanes.
            fn split(data: &'a mut Data, lanes: usize) -> Vec<Self> {
                match data {
                    $(Data::$name(values) => values.chunks_mut(lanes).map(Self::$name).collect(),)*
                }
            }

            fn len(&self) -> usize {
                match self {
                    $(Self::$name(values) => values.len(),)*
                }
            }

            /// Writes lanes from a place on.
            fn write(&mut self, at: usize, count: usize, from: &Data) -> Outcome<()> {
                let wrong = Fault::Internal("a region writes what it should not");
                match (self, from) {
                    $((Self::$name(out), Data::$name(values)) => {
                        match (out.get_mut(at..at + count), values.get(..count)) {
                            (Some(out), Some(values)) => out.copy_from_slice(values),
                            _ => return Err(wrong),
                        }
                    })*
                    _ => return Err(wrong),
                }
                Ok(())
            }
        }
    };
}

parts! {
    Pred bool;
    S8 i8;
    S16 i16;
    S32 i32;
    S64 i64;
    U8 u8;
    U16 u16;
    U32 u32;
    U64 u64;
    F16 half::f16;
    BF16 half::bf16;
    F32 f32;
    F64 f64;
    C64 num_complex::Complex<f32>;
    C128 num_complex::Complex<f64>;
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Literal, Verified};

    use super::*;
    use crate::inputs::{InputKind, inputs_for};
    use crate::{Evaluation, Limits};

    fn module(text: &str) -> Verified {
        match tilewright_text::parse_and_verify(text) {
            Ok(module) => module,
            Err(error) => panic!("{error}\n{text}"),
        }
    }

    fn outputs(module: &Verified, inputs: &[Literal], fuses: bool) -> Literal {
        let evaluation = Evaluation::new(module).limits(Limits::NONE);
        let evaluation = if fuses { evaluation } else { evaluation.one_by_one() };
        match evaluation.run(&[inputs]) {
            Ok(mut outputs) => outputs.remove(0).output,
            Err(error) => panic!("{error}"),
        }
    }

    fn first_difference(a: &Literal, b: &Literal) -> Option<(usize, Data, Data)> {
        let (Literal::Array(a), Literal::Array(b)) = (a, b) else { panic!("not an array") };
        let element = |data: &Data, at: usize| data.gather(std::iter::once(at));
        (0..a.len().max(b.len()))
            .map(|at| (at, element(a.data(), at), element(b.data(), at)))
            .find(|(_, a, b)| a != b)
    }

    /// Evaluates both ways, and says how large the regions are.
    fn check(text: &str) -> Vec<usize> {
        let module = module(text);
        let inputs = inputs_for(&module, 7, InputKind::Normal).unwrap_or_default();
        let (fused, apart) = (outputs(&module, &inputs, true), outputs(&module, &inputs, false));
        for (number, (fused, apart)) in fused.leaves().iter().zip(apart.leaves()).enumerate() {
            assert_eq!(first_difference(fused, apart), None, "output {number} of {text}");
        }
        let entry = module.entry().map(|entry| module.instructions(entry).collect::<Vec<_>>());
        let sizes =
            pieces(&module, &entry.unwrap_or_default()).into_iter().map(|piece| match piece {
                Piece::One(_) => 1,
                Piece::Together(members) => members.len(),
            });
        sizes.filter(|&size| size > 1).collect()
    }

    #[test]
    fn chains_are_one_region_and_compute_the_same() {
        // 40,000 lanes: more than one task, and a last block that is not whole.
        let text = "HloModule m
            ENTRY main {
              x = f32[40,10,100] parameter(0)
              y = f32[10] parameter(1)
              z = f32[40,100] parameter(2)
              s = f32[] parameter(3)
              c = pred[] parameter(4)
              yb = f32[40,10,100] broadcast(y), dimensions={1}
              zb = f32[40,10,100] broadcast(z), dimensions={0,2}
              sb = f32[40,10,100] broadcast(s), dimensions={}
              a = f32[40,10,100] add(x, yb)
              b = f32[40,10,100] multiply(a, zb)
              flat = f32[400,100] reshape(b)
              e = f32[400,100] exponential(flat)
              back = f32[40,10,100] reshape(e)
              most = f32[] constant(3)
              k = f32[40,10,100] clamp(s, back, most)
              w = s32[40,10,100] convert(k)
              v = f32[40,10,100] select(c, k, a)
              m = f32[40,10,100] subtract(v, sb)
              ROOT r = (f32[40,10,100], s32[40,10,100], f32[400,100], f32[40,10,100])
                tuple(m, w, e, m)
            }";
        assert_eq!(check(text), [12]);
    }

    #[test]
    fn what_others_need_ends_a_region() {
        let text = "HloModule m
            sum {
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b)
            }
            ENTRY main {
              x = f32[64,128] parameter(0)
              zero = f32[] constant(0)
              square = f32[64,128] multiply(x, x)
              more = f32[64,128] negate(x)
              total = f32[64] reduce(square, zero), dimensions={1}, to_apply=sum
              spread = f32[64,128] broadcast(total), dimensions={0}
              part = f32[64,128] divide(more, spread)
              turned = f32[128,64] transpose(part), dimensions={1,0}
              tanh = f32[64,128] tanh(part)
              cos = f32[128,64] cosine(turned)
              sin = f32[128,64] sine(cos)
              ROOT r = (f32[64,128], f32[128,64]) tuple(tanh, sin)
            }";
        assert_eq!(check(text), [2, 2, 3]);
    }

    /// A generator of numbers, good enough to choose by.
    struct Dice(u64);

    impl Dice {
        fn throw(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as usize % sides
        }
    }

    /// A program of elementwise ops, broadcasts, reshapes, reductions and
    /// transposes on arrays of 6 * 7 * 120 lanes.
    fn program(seed: u64) -> String {
        let mut dice = Dice(seed);
        let (cube, flat) = ("f32[6,7,120]", "f32[42,120]");
        let mut lines = vec![
            format!("  v0 = {cube} parameter(0)"),
            "  row = f32[120] parameter(1)".to_owned(),
            "  zero = f32[] constant(0)".to_owned(),
        ];
        let mut shapes = vec![cube];
        for i in 1..40 {
            let pick = |dice: &mut Dice, shape: &str, shapes: &[&str]| {
                let all: Vec<usize> = (0..i).filter(|&v| shapes[v] == shape).collect();
                (!all.is_empty()).then(|| all[dice.throw(all.len())])
            };
            let shape = if dice.throw(2) == 0 { cube } else { flat };
            let other = if shape == cube { flat } else { cube };
            let line = match (dice.throw(8), pick(&mut dice, shape, &shapes)) {
                (0, _) => {
                    let dim = if shape == cube { 2 } else { 1 };
                    format!("broadcast(row), dimensions={{{dim}}}")
                }
                (1 | 2, Some(a)) => format!("negate(v{a})"),
                (3 | 4, Some(a)) => {
                    let b = pick(&mut dice, shape, &shapes).unwrap_or(a);
                    format!("subtract(v{a}, v{b})")
                }
                (5, Some(a)) if shape == cube => {
                    lines.push(format!(
                        "  t{i} = f32[7,6,120] transpose(v{a}), dimensions={{1,0,2}}"
                    ));
                    format!("transpose(t{i}), dimensions={{1,0,2}}")
                }
                (6, Some(a)) => {
                    let dims = if shape == cube { "{0,1}" } else { "{0}" };
                    lines.push(format!(
                        "  t{i} = f32[120] reduce(v{a}, zero), dimensions={dims}, to_apply=sum"
                    ));
                    let dim = if shape == cube { 2 } else { 1 };
                    format!("broadcast(t{i}), dimensions={{{dim}}}")
                }
                _ => match pick(&mut dice, other, &shapes) {
                    Some(a) => format!("reshape(v{a})"),
                    None => "broadcast(zero), dimensions={}".to_owned(),
                },
            };
            lines.push(format!("  v{i} = {shape} {line}"));
            shapes.push(shape);
        }
        let wanted: Vec<usize> = (0..6).map(|_| dice.throw(40)).collect();
        let types: Vec<&str> = wanted.iter().map(|&v| shapes[v]).collect();
        let names: Vec<String> = wanted.iter().map(|v| format!("v{v}")).collect();
        lines.push(format!("  ROOT r = ({}) tuple({})", types.join(", "), names.join(", ")));
        format!(
            "HloModule m\nsum {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = \
             f32[] add(a, b)\n}}\nENTRY main {{\n{}\n}}",
            lines.join("\n")
        )
    }

    #[test]
    fn any_program_computes_the_same() {
        let mut regions = 0;
        for seed in 0..60 {
            regions += check(&program(seed)).len();
        }
        assert!(regions > 60, "{regions} regions");
    }
}
