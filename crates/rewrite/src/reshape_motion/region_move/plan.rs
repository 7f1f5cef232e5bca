//! Plans how a region is computed in other dims, and estimates the cost.

mod live_in;

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, Dims, InstId, Module, Patch, Shape, Value};

use crate::analysis::digits::Digits;
use crate::analysis::reduce::{MonoidReduce, reduced_arrays, reshape_op, shape_like};
use crate::analysis::region::{LiveOut, LiveOutKind, Region};
use crate::analysis::sharding::DeviceMesh;
use crate::cost::{Cost, CostModel, Operand, pays};
use crate::driver::numbers::FloatMode;
use crate::reshape_motion::broadcast_plan::cheapest_through;

/// A region's computation in other dims.
pub(super) struct Move {
    /// The new dims.
    pub(super) dims: Dims,
    /// The number of elementwise instructions that move.
    pub(super) ops: usize,
    /// The edits.
    pub(super) patch: Patch,
    /// Modelled cycles of the removed instructions.
    pub(super) before: f64,
    /// Modelled cycles of the added instructions.
    pub(super) after: f64,
    /// The uses that still need the old dims at full size.
    pub(super) forced: Vec<LiveOut>,
}

impl Move {
    /// Checks whether it lowers the cost by enough.
    pub(super) fn pays(&self) -> bool {
        pays(self.before, self.after)
    }
}

/// The indices of the planned instructions in the patch, by the part of the region they replace.
#[derive(Default)]
pub(super) struct Pieces {
    /// The instructions that bring each live-in to the new dims.
    pub(super) live_ins: Vec<LiveInPiece>,
    /// The interior instructions.
    pub(super) interior: Vec<usize>,
    /// The instructions for each live-out.
    pub(super) live_outs: Vec<LiveOutPiece>,
}

/// The instructions that bring a live-in to the new dims.
pub(super) struct LiveInPiece {
    /// The indices of the instructions for it alone.
    pub(super) planned: Range<usize>,
    /// Whether they read the live-in itself, which then stays.
    pub(super) reads_live_in: bool,
    /// The cycles that they would cost less if the live-in stayed.
    pub(super) spared: f64,
    /// The cycles of an existing reshape that they also replace.
    pub(super) also: f64,
}

/// The instructions for a live-out.
pub(super) struct LiveOutPiece {
    /// The indices of the instructions for it alone.
    pub(super) planned: Range<usize>,
    /// The value that replaces the user; `None` if the use needs the old dims.
    pub(super) result: Option<Value>,
}

/// The cost model, the rules on floats and the devices for which moves are planned.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) model: &'a CostModel<'a>,
    pub(super) float_mode: FloatMode,
    /// The devices over which the module's arrays lie, if it has constraints on that.
    pub(super) mesh: Option<&'a DeviceMesh>,
}

/// A move under construction.
pub(super) struct Planner<'a> {
    pub(super) module: &'a Module,
    pub(super) region: &'a Region,
    /// The digits of the reshape from the new dims to the region's.
    digits: Digits,
    pub(super) model: &'a CostModel<'a>,
    float_mode: FloatMode,
    mesh: Option<&'a DeviceMesh>,
    pub(super) patch: Patch,
    pub(super) pieces: Pieces,
    /// The values of the region in the new dims.
    moved: FxHashMap<InstId, Value>,
    /// The instructions that the move leaves without use.
    gone: FxHashSet<InstId>,
    /// The interior values that are reshaped back.
    back: FxHashSet<InstId>,
    forced: Vec<LiveOut>,
}

impl<'a> Planner<'a> {
    /// Plans the move of all of a region.
    pub(super) fn plan(
        module: &'a Module,
        region: &'a Region,
        dims: &Dims,
        Setting { model, float_mode, mesh }: Setting<'a>,
    ) -> Option<Self> {
        let mut planner = Self {
            module,
            region,
            digits: Digits::of_reshape(dims, &region.dims)?,
            model,
            float_mode,
            mesh,
            patch: Patch::new(),
            pieces: Pieces::default(),
            moved: FxHashMap::default(),
            gone: region.interior.iter().copied().collect(),
            back: FxHashSet::default(),
            forced: Vec::new(),
        };
        for live_in in &region.live_ins {
            let (value, piece) = planner.live_in(live_in)?;
            planner.moved.insert(live_in.id, value);
            planner.pieces.live_ins.push(piece);
        }
        for &id in &region.interior {
            planner.pieces.interior.push(planner.patch.planned().len());
            planner.interior(id)?;
        }
        for live_out in &region.live_outs {
            let start = planner.patch.planned().len();
            let result = planner.live_out(live_out);
            let planned = start..planner.patch.planned().len();
            planner.pieces.live_outs.push(LiveOutPiece { planned, result });
        }
        planner.mark_unread_live_ins();
        Some(planner)
    }

    /// Returns the costs of the planned instructions, and which of them are fused.
    pub(super) fn patch_costs(&self) -> (Vec<Cost>, Vec<bool>) {
        self.model.patch_costs(self.module, &self.patch)
    }

    /// Returns the move with its costs; takes the result of [`Self::patch_costs`].
    pub(super) fn weighed(self, (planned, fused): &(Vec<Cost>, Vec<bool>)) -> Move {
        let before: Cost = self.gone.iter().map(|&id| self.model.of(self.module, id)).sum();
        let after: Cost = planned.iter().copied().sum();
        let users = self.users_cost_more_by(fused);
        Move {
            dims: Dims::from_slice(self.digits.from_dims()),
            ops: self.region.interior.len(),
            patch: self.patch,
            before: before.cycles + (-users).max(0.0),
            after: after.cycles + users.max(0.0),
            forced: self.forced,
        }
    }

    /// Plans an interior instruction in the new dims; `None` if it is a constraint that no sharding
    /// of these dims can state.
    fn interior(&mut self, id: InstId) -> Option<()> {
        let extras = match self.module.op(id).is_sharding_constraint() {
            true => Some(self.mesh?.constraint_in(self.module, id, self.digits.from_dims())?),
            false => None,
        };
        let operands: SmallVec<[Value; 3]> = self
            .module
            .operands(id)
            .iter()
            .map(|&operand| self.moved.get(&operand).copied().unwrap_or(Value::Old(operand)))
            .collect();
        if let Some(shape) = self.new_shape(id) {
            let value = self.patch.add(id, self.module.op(id).clone(), shape, operands);
            if let Some(extras) = extras {
                self.patch.set_extras(value, extras);
            }
            self.moved.insert(id, value);
        }
        Some(())
    }

    /// Plans a live-out; returns the value that replaces the user, if there is one.
    fn live_out(&mut self, live_out: &LiveOut) -> Option<Value> {
        let value = *self.moved.get(&live_out.value)?;
        let result = match (live_out.kind, live_out.user) {
            (LiveOutKind::Reshape, Some(user)) => self.reshaped_live_out(user, value),
            (LiveOutKind::Reduce, Some(user)) => self.reduced_live_out(user, live_out.value, value),
            (LiveOutKind::Other | LiveOutKind::Reshape | LiveOutKind::Reduce, _) => None,
        };
        match (result, live_out.user) {
            (Some(result), Some(user)) => {
                self.patch.replace(user, result);
                self.gone.insert(user);
            }
            _ => self.force(live_out),
        }
        result
    }

    /// Returns a reduce of a moved value; its other arrays are planned anew in the new dims.
    fn reduced_live_out(&mut self, user: InstId, old: InstId, new: Value) -> Option<Value> {
        let reduce = MonoidReduce::of(self.module, user, self.float_mode)?;
        if !reduce.goes_through(self.module, &self.digits) {
            return None;
        }
        let (module, model, digits) = (self.module, self.model, &self.digits);
        let arrays = reduced_arrays(module, user).iter().map(|&id| match id == old {
            true => Some(new),
            false => cheapest_through(module, model, id, digits, &mut self.patch),
        });
        let arrays: Option<SmallVec<[Value; 2]>> = arrays.collect();
        reduce.through(module, digits, &arrays?, &mut self.patch)
    }

    fn reshaped_live_out(&mut self, user: InstId, value: Value) -> Option<Value> {
        let shape = self.array(user)?;
        if self.module.extras(user).is_some() || !shape.is_static() {
            return None;
        }
        if shape.dims() == self.digits.from_dims() && shape.has_default_layout() {
            return Some(value);
        }
        Some(self.patch.add(user, reshape_op(), self.module.shape(user).clone(), [value]))
    }

    /// Keeps the old dims for a use. A live-in still has them; an interior value is reshaped, once
    /// for all its uses.
    fn force(&mut self, live_out: &LiveOut) {
        if !self.gone.contains(&live_out.value) {
            return;
        }
        if let (true, Some(&value)) =
            (self.back.insert(live_out.value), self.moved.get(&live_out.value))
        {
            let shape = self.module.shape(live_out.value).clone();
            let back = self.patch.add(live_out.value, reshape_op(), shape, [value]);
            self.patch.replace(live_out.value, back);
        }
        self.forced.push(*live_out);
    }

    /// Marks the live-ins as gone that only gone instructions use.
    fn mark_unread_live_ins(&mut self) {
        for (live_in, piece) in self.region.live_ins.iter().zip(&self.pieces.live_ins) {
            if !piece.reads_live_in && self.only_gone_use(live_in.id) {
                self.gone.insert(live_in.id);
            }
        }
    }

    fn only_gone_use(&self, id: InstId) -> bool {
        !self.module.is_root(id) && self.module.uses(id).all(|u| self.gone.contains(&u.user))
    }

    /// Returns the additional cycles of the remaining users for reading the replaced values: a
    /// user that fuses saves the load of a fused value; any other user needs it stored first.
    /// `fused` tells which planned instructions are fused.
    fn users_cost_more_by(&self, fused: &[bool]) -> f64 {
        let (module, patch, model) = (self.module, &self.patch, self.model);
        let new: FxHashMap<InstId, Value> = patch.replaced().iter().copied().collect();
        let now = |id: InstId| model.operand(module, id);
        let then = |id: InstId| match new.get(&id) {
            Some(&value) => model.planned_operand(module, patch, fused, value),
            None => now(id),
        };
        let result = module.entry().and_then(|entry| module.computation(entry).root());
        let mut seen = FxHashSet::default();
        let mut more = 0.0;
        for &(old, _) in patch.replaced() {
            if result == Some(old) && then(old).fused != now(old).fused {
                let store = model.store_cost(now(old).value).cycles;
                more += if now(old).fused { -store } else { store };
            }
            for user in module.users(old) {
                if !self.gone.contains(&user) && seen.insert(user) {
                    let operands: SmallVec<[Operand<'_>; 4]> =
                        module.operands(user).iter().map(|&operand| then(operand)).collect();
                    let result = model.with_footprint(module.shape(user));
                    more += model.in_module(module, module.op(user), result, &operands).cycles;
                    more -= model.of(module, user).cycles;
                }
            }
        }
        more
    }

    /// Returns the modelled cycles of an instruction of the module.
    pub(super) fn cost_of(&self, id: InstId) -> f64 {
        self.model.of(self.module, id).cycles
    }

    /// Checks whether a row-major array has the new dims.
    pub(super) fn has_new_dims(&self, id: InstId) -> bool {
        self.array(id)
            .is_some_and(|s| s.dims() == self.digits.from_dims() && s.has_default_layout())
    }

    fn array(&self, id: InstId) -> Option<&ArrayShape> {
        self.module.array_shape(id)
    }

    /// Returns the shape of a value of the region in the new dims.
    pub(super) fn new_shape(&self, id: InstId) -> Option<Shape> {
        Some(shape_like(self.array(id)?, self.digits.from_dims()))
    }
}
