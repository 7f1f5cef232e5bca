//! Plans the live-ins of a region in the new dims.

use std::ops::Range;

use smallvec::SmallVec;
use tilewright_ir::ops::shaping::TransposeAttrs;
use tilewright_ir::{InstId, Literal, Op, Opcode, Patch, Planned, Shape, Value};

use super::{LiveInPiece, Planner};
use crate::analysis::reduce::{is_plain, reshape_op, shape_like};
use crate::analysis::region::{LiveIn, LiveInKind};
use crate::reshape_motion::broadcast_plan::repeated_through;

/// The most uses of a value searched for a reshape of it.
const MOST_USES: usize = 16;

impl Planner<'_> {
    /// Plans a live-in: its value in the new dims, and the instructions for it.
    pub(super) fn live_in(&mut self, live_in: &LiveIn) -> Option<(Value, LiveInPiece)> {
        let mut patch = std::mem::take(&mut self.patch);
        let start = patch.planned().len();
        let planned = match live_in.kind {
            LiveInKind::Transpose(source) => self.transposed([live_in.id, source], &mut patch),
            _ => self.live_in_value(live_in, &mut patch).map(|value| (value, 0.0)),
        };
        self.patch = patch;
        let (value, spared) = planned?;
        let planned = start..self.patch.planned().len();
        let reads_live_in = self.reads(planned.clone(), live_in.id);
        let also = self.stand_in(value, planned.clone());
        Some((value, LiveInPiece { planned, reads_live_in, spared, also }))
    }

    fn reads(&self, planned: Range<usize>, id: InstId) -> bool {
        let mut planned = self.patch.planned().get(planned).into_iter().flatten();
        planned.any(|planned| planned.operands.contains(&Value::Old(id)))
    }

    /// Lets a planned reshape replace an equal one in the module; returns the cycles of that one.
    fn stand_in(&mut self, value: Value, planned: Range<usize>) -> f64 {
        let twin = match self.patch.planned().get(planned) {
            Some([Planned { op: Op::Reshape(_), shape, operands, .. }]) => match **operands {
                [Value::Old(of)] => self.reshape_to(of, shape),
                _ => None,
            },
            _ => None,
        };
        let Some(twin) = twin else { return 0.0 };
        self.patch.replace(twin, value);
        self.gone.insert(twin);
        self.cost_of(twin)
    }

    /// Returns a reshape of a value to a shape, among its first uses.
    pub(in super::super) fn reshape_to(&self, id: InstId, shape: &Shape) -> Option<InstId> {
        let module = self.module;
        let mut users = module.uses(id).take(MOST_USES).map(|u| u.user);
        users.find(|&user| {
            module.opcode(user) == Opcode::Reshape
                && module.extras(user).is_none()
                && module.shape(user) == shape
        })
    }

    fn live_in_value(&self, live_in: &LiveIn, patch: &mut Patch) -> Option<Value> {
        let id = live_in.id;
        match live_in.kind {
            LiveInKind::Reshape(source) if self.has_new_dims(source) => Some(Value::Old(source)),
            // One reshape replaces two.
            LiveInKind::Reshape(source) => self.reshaped([id, source], patch),
            LiveInKind::Transpose(_) | LiveInKind::Other => self.reshaped([id, id], patch),
            LiveInKind::Broadcast(_) | LiveInKind::Iota => {
                repeated_through(self.module, id, &self.digits, patch)
            }
            LiveInKind::Constant => {
                let elements = self.module.constant(id)?.as_array()?.clone();
                let dims = self.digits.from_dims().iter().copied();
                let elements = Literal::Array(elements.reshape(dims).ok()?);
                Some(patch.add(id, Op::Constant(Box::new(elements)), self.new_shape(id)?, []))
            }
        }
    }

    /// Returns a live-in as a reshape of `of`, which has the same elements.
    fn reshaped(&self, [live_in, of]: [InstId; 2], patch: &mut Patch) -> Option<Value> {
        let (after, shape) = (self.module.next_instruction(of)?, self.new_shape(live_in)?);
        Some(patch.add_like(live_in, after, reshape_op(), shape, [Value::Old(of)]))
    }

    /// Plans `transpose(source)` as a transpose of a reshape or, if that costs more or is not
    /// possible, as a reshape of the transpose. Also returns how much less the latter would
    /// cost if the transpose stayed anyway.
    fn transposed(
        &self,
        [live_in, source]: [InstId; 2],
        patch: &mut Patch,
    ) -> Option<(Value, f64)> {
        let (mut turned, mut reshaped) = (Patch::new(), Patch::new());
        let can_turn = self.turned([live_in, source], &mut turned).is_some();
        self.reshaped([live_in, live_in], &mut reshaped)?;
        let cost = |patch: &Patch| self.model.patch(self.module, patch).cycles;
        let more = cost(&turned) - cost(&reshaped);
        // The existing transpose is removed with its last use.
        let goes = self.only_gone_use(live_in);
        let saved = if goes { self.cost_of(live_in) } else { 0.0 };
        if can_turn && more < saved {
            return Some((self.turned([live_in, source], patch)?, more.max(0.0)));
        }
        Some((self.reshaped([live_in, live_in], patch)?, 0.0))
    }

    /// Returns a transpose of a reshape of the source. If that is not possible, returns `None`
    /// and adds nothing.
    fn turned(&self, [live_in, source]: [InstId; 2], patch: &mut Patch) -> Option<Value> {
        let Op::Transpose(attrs) = self.module.op(live_in) else { return None };
        let (shape, like) = (self.new_shape(live_in)?, self.array(live_in)?);
        let plan = self.digits.transpose_through(&places(&attrs.dimensions)?)?;
        let value = match self.lying_in(source, &plan.reshape_to) {
            Some(source) => Value::Old(source),
            None => {
                let shape = shape_like(like, &plan.reshape_to);
                patch.add(live_in, reshape_op(), shape, [Value::Old(source)])
            }
        };
        if plan.transpose_is_trivial() {
            return Some(value);
        }
        let dimensions = plan.order.iter().filter_map(|&d| i64::try_from(d).ok()).collect();
        let op = Op::Transpose(Box::new(TransposeAttrs { dimensions }));
        Some(patch.add(live_in, op, shape, [value]))
    }

    /// Returns the value itself or the operand of its reshape, if one of them has these dims
    /// and is row-major.
    fn lying_in(&self, id: InstId, dims: &[i64]) -> Option<InstId> {
        let fits = |id: &InstId| self.array(*id).is_some_and(|s| s.dims() == dims && is_plain(s));
        let source = match (self.module.op(id), self.module.operands(id)) {
            (Op::Reshape(_), [source]) if self.module.extras(id).is_none() => Some(*source),
            _ => None,
        };
        [Some(id), source].into_iter().flatten().find(fits)
    }
}

fn places(dims: &[i64]) -> Option<SmallVec<[usize; 6]>> {
    dims.iter().map(|&d| usize::try_from(d).ok()).collect()
}
