//! Loops over a tuple whose users all take single elements. The state of such a loop can lose
//! elements, or carry them in another form.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::ops::control::{GetTupleElementAttrs, WhileAttrs};
use tilewright_ir::{CompId, EditError, InstId, Module, Op, Position, Shape};

use crate::analysis::reduce::is_plain;

/// The number of instructions that call each computation; the entry counts one more for the caller
/// of the module.
pub(super) struct Callers(FxHashMap<CompId, usize>);

impl Callers {
    pub(super) fn of(module: &Module) -> Self {
        let mut callers: FxHashMap<CompId, usize> = FxHashMap::default();
        for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
            module.op(id).for_each_computation(&mut |c| *callers.entry(c).or_default() += 1);
        }
        if let Some(entry) = module.entry() {
            *callers.entry(entry).or_default() += 1;
        }
        Self(callers)
    }

    fn only_one_of(&self, computation: CompId) -> bool {
        self.0.get(&computation) == Some(&1)
    }
}

/// A loop whose state can be changed: no other instruction calls its body or condition, both only
/// take elements of the state, and nothing is attached to the state.
pub(super) struct Loop {
    /// The `while`.
    pub(super) id: InstId,
    /// The initial state.
    pub(super) init: InstId,
    /// The computation of one iteration, its parameter, and the tuple that it returns.
    pub(super) body: CompId,
    pub(super) body_state: InstId,
    pub(super) root: InstId,
    /// The computation that decides whether to go on, and its parameter.
    pub(super) condition: CompId,
    pub(super) condition_state: InstId,
}

/// Another form of a value: `back(there(x)) = x` and `there(back(y)) = y`.
#[derive(Clone, Debug)]
pub(super) struct CarriedForm {
    /// The shape of the other form.
    pub(super) shape: Shape,
    /// The op that brings a value into the form.
    pub(super) there: Op,
    /// The op that brings it back.
    pub(super) back: Op,
}

/// An element of a new state.
pub(super) struct Element {
    /// Its index in the old state.
    pub(super) was: usize,
    /// The new form in which it is carried; `None` keeps the form.
    pub(super) form: Option<CarriedForm>,
}

impl Loop {
    /// The loop `id`, if its state can be changed.
    pub(super) fn of(module: &Module, id: InstId, callers: &Callers) -> Option<Self> {
        let Op::While(attrs) = module.op(id) else { return None };
        let WhileAttrs { body, condition } = **attrs;
        let parameter = |c: CompId| match module.computation(c).parameters() {
            [only] => Some(*only),
            _ => None,
        };
        let [init] = *module.operands(id) else { return None };
        let root = module.computation(body).root()?;
        let (body_state, condition_state) = (parameter(body)?, parameter(condition)?);
        let found = Self { id, init, body, body_state, root, condition, condition_state };
        let own = callers.only_one_of(body) && callers.only_one_of(condition);
        let plain = [id, init, root, body_state, condition_state];
        let changes = own
            && !module.is_root(id)
            && matches!(module.op(root), Op::Tuple)
            && plain.iter().all(|&value| module.extras(value).is_none())
            && found.states().iter().all(|&state| is_taken_apart(module, state));
        changes.then_some(found)
    }

    /// Returns the values that stand for the state: after the loop, in the body, in the
    /// condition.
    pub(super) fn states(&self) -> [InstId; 3] {
        [self.id, self.body_state, self.condition_state]
    }

    /// Gives the loop a state of these elements. Readers of other elements stay unchanged for the
    /// caller to remove.
    pub(super) fn restate(
        &self,
        module: &mut Module,
        elements: &[Element],
    ) -> Result<(), EditError> {
        let init = remade(module, self.init, Position::Before(self.id), elements)?;
        let next = remade(module, self.root, Position::Before(self.root), elements)?;
        module.set_root(next)?;
        // The old root would still count as a reader of the state.
        remove_unused(module, self.root)?;
        for state in [self.body_state, self.condition_state] {
            module.set_parameter_shape(state, shape_of(module, state, elements))?;
        }
        let name = module.name_of(self.id).to_owned();
        let name = module.fresh_name(&name);
        let (op, shape) = (module.op(self.id).clone(), shape_of(module, self.id, elements));
        let changed = module.insert(Position::Before(self.id), op, shape, &[init], name)?;
        module.copy_metadata(self.id, changed);
        let places: FxHashMap<usize, usize> =
            elements.iter().enumerate().map(|(place, element)| (element.was, place)).collect();
        let states = [changed, self.body_state, self.condition_state];
        for (old, new) in self.states().into_iter().zip(states) {
            for read in module.users(old) {
                let place = element_of(module, read).and_then(|(_, was)| places.get(&was).copied());
                if let Some(element) = place.and_then(|place| Some((place, elements.get(place)?))) {
                    take(module, read, new, element)?;
                }
            }
        }
        remove_unused(module, self.id)?;
        remove_unused(module, self.init)
    }
}

/// Removes a tuple or a loop that has no users.
fn remove_unused(module: &mut Module, id: InstId) -> Result<(), EditError> {
    let replaced = matches!(module.op(id), Op::Tuple | Op::While(_));
    if replaced && module.is_removable(id) { module.remove(id) } else { Ok(()) }
}

/// Returns the tuple of which an instruction takes an element, and the index of the element.
pub(super) fn element_of(module: &Module, id: InstId) -> Option<(InstId, usize)> {
    match (module.op(id), module.operands(id)) {
        (Op::GetTupleElement(attrs), [tuple]) => Some((*tuple, usize::try_from(attrs.index).ok()?)),
        _ => None,
    }
}

/// Returns the operand that is element `place` of a tuple, if `tuple` is a `tuple` instruction.
pub(super) fn part_of(module: &Module, tuple: InstId, place: usize) -> Option<InstId> {
    match module.op(tuple) {
        Op::Tuple => module.operands(tuple).get(place).copied(),
        _ => None,
    }
}

fn is_taken_apart(module: &Module, state: InstId) -> bool {
    module.uses(state).all(|u| matches!(module.op(u.user), Op::GetTupleElement(_)))
}

/// Returns the shape of a state once it has these elements.
fn shape_of(module: &Module, state: InstId, elements: &[Element]) -> Shape {
    let old = module.shape(state).as_tuple().unwrap_or_default();
    let shape = |element: &Element| match &element.form {
        Some(form) => Some(form.shape.clone()),
        None => old.get(element.was).cloned(),
    };
    Shape::Tuple(elements.iter().filter_map(shape).collect())
}

/// Inserts a tuple of these elements of a tuple.
fn remade(
    module: &mut Module,
    tuple: InstId,
    position: Position,
    elements: &[Element],
) -> Result<InstId, EditError> {
    let shape = shape_of(module, tuple, elements);
    let mut parts: SmallVec<[InstId; 8]> = SmallVec::new();
    for element in elements {
        let part = match part_of(module, tuple, element.was) {
            Some(part) => part,
            None => taken(module, tuple, element.was, position)?,
        };
        parts.push(match &element.form {
            Some(form) => in_form(module, part, form, position)?,
            None => part,
        });
    }
    let name = module.name_of(tuple).to_owned();
    let name = module.fresh_name(&name);
    let made = module.insert(position, Op::Tuple, shape, &parts, name)?;
    module.copy_metadata(tuple, made);
    Ok(made)
}

/// Inserts a `get-tuple-element` of a tuple.
fn taken(
    module: &mut Module,
    tuple: InstId,
    place: usize,
    position: Position,
) -> Result<InstId, EditError> {
    let shape = module.shape(tuple).as_tuple().and_then(|parts| parts.get(place)).cloned();
    let op = take_op(place);
    let name = module.fresh_name(op.opcode().name());
    let id =
        module.insert(position, op, shape.unwrap_or(Shape::Tuple(Vec::new())), &[tuple], name)?;
    module.copy_metadata(tuple, id);
    Ok(id)
}

fn take_op(place: usize) -> Op {
    // A tuple has fewer elements than there are instructions.
    let index = i64::try_from(place).unwrap_or(i64::MAX);
    Op::GetTupleElement(Box::new(GetTupleElementAttrs { index }))
}

/// Returns a value in another form: its source where it was made from that form, else a new
/// instruction.
fn in_form(
    module: &mut Module,
    value: InstId,
    form: &CarriedForm,
    position: Position,
) -> Result<InstId, EditError> {
    let origin = form.origin(module, value);
    if form.source(module, value).is_some() {
        return Ok(origin);
    }
    let name = module.fresh_name(form.there.opcode().name());
    let made = module.insert(position, form.there.clone(), form.shape.clone(), &[origin], name)?;
    module.copy_metadata(value, made);
    Ok(made)
}

/// Makes a reader of an element of the old state read the new state.
fn take(
    module: &mut Module,
    read: InstId,
    state: InstId,
    (place, element): (usize, &Element),
) -> Result<(), EditError> {
    let Some(form) = &element.form else {
        module.set_attributes(read, take_op(place))?;
        return module.set_operand(read, 0, state);
    };
    let position = Position::Before(read);
    let (op, name) = (take_op(place), module.name_of(read).to_owned());
    let name = module.fresh_name(&name);
    let carried = module.insert(position, op, form.shape.clone(), &[state], name)?;
    module.copy_metadata(read, carried);
    for user in module.users(read) {
        if form.leads_to(module, user) {
            module.replace_uses(user, carried)?;
            module.remove(user)?;
        } else if form.merges_with(module, user) {
            module.set_operand(user, 0, carried)?;
        }
    }
    if module.is_live(read) {
        let (op, shape) = (form.back.clone(), module.shape(read).clone());
        let name = module.fresh_name(op.opcode().name());
        let back = module.insert(position, op, shape, &[carried], name)?;
        module.copy_metadata(read, back);
        module.replace_uses(read, back)?;
    }
    module.remove(read)
}

impl CarriedForm {
    /// Checks whether an instruction with nothing attached brings its operand into this form.
    pub(super) fn leads_to(&self, module: &Module, id: InstId) -> bool {
        module.op(id) == &self.there && module.extras(id).is_none() && self.is_of(module, id)
    }

    /// Checks whether a row-major value has this form. In other layouts, a change of form may
    /// be the instruction that reorders the elements in memory.
    fn is_of(&self, module: &Module, id: InstId) -> bool {
        module.array_shape(id).is_some_and(is_plain) && module.shape(id).compatible(&self.shape)
    }

    /// Checks whether an instruction, applied to a value of the old form, can be applied to one
    /// of this form instead: both changes are reshapes.
    pub(super) fn merges_with(&self, module: &Module, id: InstId) -> bool {
        let reshapes = matches!((&self.there, module.op(id)), (Op::Reshape(_), Op::Reshape(_)));
        reshapes && plain_change(module, id).is_some()
    }

    /// Returns the value of this form from which `id` was made.
    pub(super) fn source(&self, module: &Module, id: InstId) -> Option<InstId> {
        let source = plain_change(module, id)?;
        (module.op(id) == &self.back && self.is_of(module, source)).then_some(source)
    }

    /// Returns the value that is brought into this form in place of `id`: its source, the
    /// operand of a mergeable reshape, or `id` itself.
    pub(super) fn origin(&self, module: &Module, id: InstId) -> InstId {
        let reshaped = || plain_change(module, id).filter(|_| self.merges_with(module, id));
        self.source(module, id).or_else(reshaped).unwrap_or(id)
    }
}

/// Returns the operand of a reshape or transpose with nothing attached and row-major arrays.
pub(super) fn plain_change(module: &Module, id: InstId) -> Option<InstId> {
    let changes = match module.op(id) {
        Op::Reshape(attrs) => attrs.inferred_dimension.is_none(),
        Op::Transpose(_) => true,
        _ => false,
    };
    let [source] = *module.operands(id) else { return None };
    let plain = |id: InstId| module.array_shape(id).is_some_and(is_plain);
    (changes && module.extras(id).is_none() && plain(source) && plain(id)).then_some(source)
}
