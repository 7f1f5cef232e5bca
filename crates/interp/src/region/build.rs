//! From instructions to the actions of a region.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::{ElementType, InstId, Verified};

use super::role::{Role, lanes_of, role, static_shape};
use super::{Action, Input, LaneRegion, Output, Reading, RegionFold};
use crate::eval::elementwise::kernel;
use crate::eval::fold::FoldShape;

impl LaneRegion {
    /// Builds the kernels of some instructions; the values of `needed` are used outside.
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
                in_place: Vec::new(),
                folds: Vec::new(),
                fold_shape: None,
            },
        };
        for &id in members {
            if let Some(shape) = FoldShape::of(module, id) {
                builder.fold(id, shape)?;
                continue;
            }
            let register = builder.member(id)?;
            builder.register_of.insert(id, register);
            if needed(id) {
                builder.store(id, register)?;
            }
        }
        Some(builder.region.with_few_registers())
    }

    /// The same region, with registers reused after the last use of their values.
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
        self.in_place = self.in_place();
        self
    }

    /// Returns the outputs that may overwrite an input: each block of the input is read before
    /// the block of the output is written.
    fn in_place(&self) -> Vec<(usize, usize)> {
        let mut read: Vec<(usize, ElementType)> = Vec::new();
        let mut pairs = Vec::new();
        for action in &self.actions {
            match *action {
                Action::Load { input, register }
                    if matches!(self.inputs[input].how, Reading::Lanes) =>
                {
                    read.push((input, self.registers[register]));
                }
                Action::Store { register, output } => {
                    let alike = |(_, read): &(_, ElementType)| *read == self.registers[register];
                    if let Some(at) = read.iter().position(alike) {
                        pairs.push((read.remove(at).0, output));
                    }
                }
                Action::Load { .. } | Action::Compute { .. } | Action::Fold { .. } => {}
            }
        }
        pairs
    }
}

/// A region while it is made.
struct Builder<'m> {
    module: &'m Verified,
    region: LaneRegion,
    register_of: FxHashMap<InstId, usize>,
}

impl Builder<'_> {
    fn register(&mut self, element_type: ElementType) -> usize {
        self.region.registers.push(element_type);
        self.region.registers.len() - 1
    }

    /// Returns the register with the value of a member.
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

    /// Returns the register with the lanes of an operand: of a member, or from outside.
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

    fn fold(&mut self, id: InstId, shape: FoldShape) -> Option<()> {
        let [operand, init] = *self.module.operands(id) else { return None };
        let register = self.lanes(operand)?;
        let result = static_shape(self.module, id)?;
        let (element_type, dims) = (result.element_type, result.dims().into());
        let (init_id, init) = (init, self.region.inputs.len());
        self.region.inputs.push(Input { id: init_id, how: Reading::Uniform });
        let fold = self.region.folds.len();
        self.region.folds.push(RegionFold { id, init, element_type, dims });
        self.region.actions.push(Action::Fold { register, fold });
        self.region.fold_shape = Some(shape);
        Some(())
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
