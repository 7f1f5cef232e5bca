//! How often the body of a loop runs.
//!
//! A loop counts turns if its condition compares an element of the state with a bound, and its body adds a constant
//! to this element. From `init`, in steps of `step`, it runs while `init + turns * step < bound`:
//! `turns = ceil((bound - init) / step)`.
//! XLA finds the same loops (`MatchTrivialLoopTripCount` in `xla/service/while_loop_analysis.cc`), and writes what it
//! found into the `backend_config` of compiled loops.

use std::ops::RangeInclusive;

use tilewright_ir::ops::control::WhileAttrs;
use tilewright_ir::ops::elementwise::Direction;
use tilewright_ir::{CompId, Data, ElementType, InstId, Module, Op, backend_config};

/// Returns the number of turns of a `while`, if it is known before the run.
pub fn trip_count(module: &Module, id: InstId) -> Option<u64> {
    let Op::While(attrs) = module.op(id) else { return None };
    stated(module, id).or_else(|| Counted { module, id, attrs }.turns())
}

/// Returns the number of turns that XLA found when it compiled the loop.
fn stated(module: &Module, id: InstId) -> Option<u64> {
    let config = module.extras(id)?.backend_config.as_ref()?;
    let config = String::from_utf8(backend_config::to_bytes(config)?).ok()?;
    let (_, count) = config.split_once("\"known_trip_count\":{\"n\":\"")?;
    count.split('"').next()?.parse().ok()
}

/// A loop whose turns are to be counted.
struct Counted<'a> {
    module: &'a Module,
    id: InstId,
    attrs: &'a WhileAttrs,
}

impl Counted<'_> {
    fn turns(&self) -> Option<u64> {
        let module = self.module;
        let root = module.computation(self.attrs.condition).root()?;
        let (Op::Compare(compare), &[left, right]) = (module.op(root), module.operands(root))
        else {
            return None;
        };
        let (counter, bound, direction) = match self.start_and_step(left) {
            Some(counter) => {
                (counter, self.constant(self.attrs.condition, right)?, compare.direction)
            }
            None => {
                let bound = self.constant(self.attrs.condition, left)?;
                (self.start_and_step(right)?, bound, flipped(compare.direction))
            }
        };
        let counted = turns(counter, bound, direction)?;
        // A counter that wraps around meets the bound at another time, or never.
        let (start, step) = counter;
        let last = start + step * i128::from(counted);
        range(module.array_shape(left)?.element_type)?.contains(&last).then_some(counted)
    }

    /// Returns the initial value of an element of the state that the condition reads, and the constant that each turn
    /// adds to it.
    fn start_and_step(&self, read: InstId) -> Option<(i128, i128)> {
        let (module, body) = (self.module, self.attrs.body);
        let place = self.place(self.attrs.condition, read)?;
        let next = self.next(place)?;
        let &[left, right] = module.operands(next) else { return None };
        let is_counter = |id: InstId| self.place(body, id) == Some(place);
        let step = match module.op(next) {
            Op::Add if is_counter(left) => self.constant(body, right)?,
            Op::Add if is_counter(right) => self.constant(body, left)?,
            Op::Subtract if is_counter(left) => -self.constant(body, right)?,
            _ => return None,
        };
        // Unsigned numbers are counted down by adding one that wraps around.
        let range = range(module.array_shape(next)?.element_type)?;
        let numbers = range.end() - range.start() + 1;
        let is_down = *range.start() == 0 && step > numbers / 2;
        Some((self.initial(place)?, if is_down { step - numbers } else { step }))
    }

    /// Returns the place in the state of the element that an instruction of the body or the condition is.
    fn place(&self, computation: CompId, id: InstId) -> Option<usize> {
        let Op::GetTupleElement(attrs) = self.module.op(id) else { return None };
        let state = self.module.computation(computation).parameters();
        let is_state = self.module.operands(id) == state;
        usize::try_from(attrs.index).ok().filter(|_| is_state)
    }

    /// Returns the value of an element of the state after a turn.
    fn next(&self, place: usize) -> Option<InstId> {
        element(self.module, self.module.computation(self.attrs.body).root()?, place)
    }

    fn initial(&self, place: usize) -> Option<i128> {
        let init = *self.module.operands(self.id).first()?;
        integer(self.module, element(self.module, init, place)?)
    }

    /// Returns the value of an instruction of the body or the condition that is the same in every turn: a constant, or
    /// an element of the state that the body hands on.
    fn constant(&self, computation: CompId, id: InstId) -> Option<i128> {
        if let Some(value) = integer(self.module, id) {
            return Some(value);
        }
        let place = self.place(computation, id)?;
        let is_kept = self.place(self.attrs.body, self.next(place)?) == Some(place);
        self.initial(place).filter(|_| is_kept)
    }
}

/// Returns an element of a tuple.
fn element(module: &Module, tuple: InstId, place: usize) -> Option<InstId> {
    let is_tuple = matches!(module.op(tuple), Op::Tuple);
    module.operands(tuple).get(place).copied().filter(|_| is_tuple)
}

/// Returns the value of an integer constant of one element.
fn integer(module: &Module, id: InstId) -> Option<i128> {
    fn only<T: Copy + Into<i128>>(values: &[T]) -> Option<i128> {
        match values {
            &[value] => Some(value.into()),
            _ => None,
        }
    }
    match module.constant(id)?.as_array()?.data() {
        Data::S8(values) => only(values),
        Data::S16(values) => only(values),
        Data::S32(values) => only(values),
        Data::S64(values) => only(values),
        Data::U8(values) => only(values),
        Data::U16(values) => only(values),
        Data::U32(values) => only(values),
        Data::U64(values) => only(values),
        _ => None,
    }
}

/// Returns the numbers of an integer type that counters have.
fn range(element_type: ElementType) -> Option<RangeInclusive<i128>> {
    Some(match element_type {
        ElementType::S8 => i8::MIN.into()..=i8::MAX.into(),
        ElementType::S16 => i16::MIN.into()..=i16::MAX.into(),
        ElementType::S32 => i32::MIN.into()..=i32::MAX.into(),
        ElementType::S64 => i64::MIN.into()..=i64::MAX.into(),
        ElementType::U8 => 0..=u8::MAX.into(),
        ElementType::U16 => 0..=u16::MAX.into(),
        ElementType::U32 => 0..=u32::MAX.into(),
        ElementType::U64 => 0..=u64::MAX.into(),
        _ => return None,
    })
}

/// Returns the direction of a comparison whose operands change places.
fn flipped(direction: Direction) -> Direction {
    match direction {
        Direction::Lt => Direction::Gt,
        Direction::Le => Direction::Ge,
        Direction::Gt => Direction::Lt,
        Direction::Ge => Direction::Le,
        same => same,
    }
}

/// Counts the turns of a loop that goes on while `start + turns * step` compares with `bound` in this direction. `None`
/// if it does not end; integers are taken not to wrap around.
fn turns((start, step): (i128, i128), bound: i128, direction: Direction) -> Option<u64> {
    let ahead = bound - start;
    let (ahead, step) = match direction {
        Direction::Lt => (ahead, step),
        Direction::Le => (ahead + 1, step),
        Direction::Gt => (-ahead, -step),
        Direction::Ge => (1 - ahead, -step),
        Direction::Ne if ahead < 0 => (-ahead, -step),
        Direction::Ne => (ahead, step),
        Direction::Eq => return None,
    };
    if ahead <= 0 {
        return Some(0);
    }
    let is_met = direction != Direction::Ne || step != 0 && ahead % step == 0;
    let turns = (step > 0 && is_met).then(|| (ahead + step - 1) / step)?;
    u64::try_from(turns).ok()
}

#[cfg(test)]
mod tests {
    use super::Direction::{Eq, Ge, Gt, Le, Lt, Ne};
    use super::turns;

    #[test]
    fn turns_are_counted_by_hand() {
        assert_eq!(turns((0, 1), 10, Lt), Some(10));
        assert_eq!(turns((0, 3), 10, Lt), Some(4));
        assert_eq!(turns((1, 3), 10, Le), Some(4));
        assert_eq!(turns((10, -1), 0, Gt), Some(10));
        assert_eq!(turns((10, -2), 0, Ge), Some(6));
        assert_eq!(turns((6, -2), 0, Ne), Some(3));
        assert_eq!(turns((0, 2), 6, Ne), Some(3));
        assert_eq!(turns((0, 4), 6, Ne), None, "it steps over the bound");
        assert_eq!(turns((5, 1), 5, Lt), Some(0));
        assert_eq!(turns((5, 0), 5, Ne), Some(0));
        assert_eq!(turns((0, 0), 5, Lt), None);
        assert_eq!(turns((0, -1), 5, Lt), None);
        assert_eq!(turns((0, 1), 0, Eq), None);
    }
}
