//! Whatever is edited in whatever order, the lists agree with each other.
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::common::{add, custom_call, parameter, picture, shape};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tilewright_ir::{
    CompId, EditError, Entity as _, InstId, Module, Moment, OpMetadata, Patch, Position, Use,
    Value, verify::check,
};

/// An edit of a computation; numbers pick instructions, modulo what there is.
#[derive(Clone, Debug)]
enum Edit {
    Insert {
        at: usize,
        operands: Vec<usize>,
    },
    SetOperand {
        user: usize,
        operand: usize,
        value: usize,
    },
    ReplaceUses {
        old: usize,
        new: usize,
    },
    Remove(usize),
    Copy {
        id: usize,
        at: usize,
    },
    SetRoot(usize),
    SetControl {
        id: usize,
        predecessors: Vec<usize>,
    },
    Patch {
        at: usize,
        operand: usize,
        length: usize,
        old: usize,
    },
    /// Edits that must be refused.
    Foreign {
        user: usize,
        kind: usize,
    },
}

impl Edit {
    /// Returns the kind of an edit that may be accepted.
    fn kind(&self) -> Option<&'static str> {
        Some(match self {
            Self::Insert { .. } => "insert",
            Self::SetOperand { .. } => "set operand",
            Self::ReplaceUses { .. } => "replace uses",
            Self::Remove(_) => "remove",
            Self::Copy { .. } => "copy",
            Self::SetRoot(_) => "set root",
            Self::SetControl { .. } => "set control",
            Self::Patch { .. } => "patch",
            Self::Foreign { .. } => return None,
        })
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let n = 0..64usize;
    let some = || prop::collection::vec(0..64usize, 0..4);
    prop_oneof![
        4 => (n.clone(), some()).prop_map(|(at, operands)| Edit::Insert { at, operands }),
        2 => (n.clone(), n.clone(), n.clone())
            .prop_map(|(user, operand, value)| Edit::SetOperand { user, operand, value }),
        2 => (n.clone(), n.clone()).prop_map(|(old, new)| Edit::ReplaceUses { old, new }),
        3 => n.clone().prop_map(Edit::Remove),
        1 => (n.clone(), n.clone()).prop_map(|(id, at)| Edit::Copy { id, at }),
        1 => n.clone().prop_map(Edit::SetRoot),
        1 => (n.clone(), some())
            .prop_map(|(id, predecessors)| Edit::SetControl { id, predecessors }),
        1 => (n.clone(), n.clone(), 0..4usize, n.clone())
            .prop_map(|(at, operand, length, old)| Edit::Patch { at, operand, length, old }),
        1 => (n, 0..4usize).prop_map(|(user, kind)| Edit::Foreign { user, kind }),
    ]
}

/// The operands of an instruction, its uses, and what must run after it.
type Links = (Vec<InstId>, Vec<Use>, Vec<InstId>);

#[derive(Clone)]
struct World {
    module: Module,
    main: CompId,
    far: InstId,
}

impl World {
    fn new() -> Self {
        let mut module = Module::new("laws");
        let other = module.add_computation("other");
        let far = add(&mut module, other, parameter(0), "f32[]", &[], "far");
        let main = module.add_computation("main");
        module.set_entry(main);
        for number in 0..3 {
            let name = format!("p{number}");
            add(&mut module, main, parameter(number), "f32[]", &[], &name);
        }
        Self { module, main, far }
    }

    fn order(&self) -> Vec<InstId> {
        self.module.instructions(self.main).collect()
    }

    /// Returns the instruction that `at` picks and its place in the order.
    fn pick(&self, at: usize) -> (usize, InstId) {
        let order = self.order();
        (at % order.len(), order[at % order.len()])
    }

    /// Returns an instruction before place `limit`, if there is one.
    fn before(&self, limit: usize, at: usize) -> Option<InstId> {
        (limit > 0).then(|| self.order()[at % limit])
    }

    fn apply(&mut self, edit: &Edit) -> Result<(), EditError> {
        match edit {
            Edit::Insert { at, operands } => {
                // One place in three is the end.
                let (place, next) = self.pick(*at);
                let (limit, position) = if at % 3 == 0 {
                    (self.order().len(), Position::End(self.main))
                } else {
                    (place, Position::Before(next))
                };
                let operands: Vec<InstId> =
                    operands.iter().filter_map(|&o| self.before(limit, o)).collect();
                let name = self.module.fresh_name("new");
                self.module.insert(position, custom_call(), shape("f32[]"), &operands, name)?;
            }
            Edit::SetOperand { user, operand, value } => {
                let (place, user) = self.pick(*user);
                let Some(value) = self.before(place, *value) else { return Ok(()) };
                self.module.set_operand(user, *operand % 3, value)?;
            }
            Edit::ReplaceUses { old, new } => {
                let (place, old) = self.pick(*old);
                let Some(new) = self.before(place + 1, *new) else { return Ok(()) };
                self.module.replace_uses(old, new)?;
            }
            Edit::Remove(id) => self.module.remove(self.pick(*id).1)?,
            Edit::Copy { id, at } => {
                let (_, id) = self.pick(*id);
                let parameters = self.module.computation(self.main).parameters().to_vec();
                if parameters.contains(&id) {
                    return Ok(()); // Its number twice would be wrong.
                }
                let position = Position::End(self.main);
                let map = |old| (at % 2 == 0 && old == parameters[1]).then_some(parameters[0]);
                self.module.copy_instruction(id, position, map)?;
            }
            Edit::SetRoot(id) => self.module.set_root(self.pick(*id).1)?,
            Edit::SetControl { id, predecessors } => {
                let (place, id) = self.pick(*id);
                let before = predecessors.iter().filter_map(|&p| self.before(place, p)).collect();
                self.module.set_control_predecessors(id, before);
            }
            Edit::Patch { at, operand, length, old } => {
                let (place, next) = self.pick(*at);
                let Some(operand) = self.before(place, *operand) else { return Ok(()) };
                let mut patch = Patch::new();
                let mut value = Value::Old(operand);
                for _ in 0..*length {
                    let operands = [value, Value::Old(operand)];
                    value = patch.add(next, custom_call(), shape("f32[]"), operands);
                }
                // Only instructions at `next` or after it may be replaced.
                let (_, old) = self.pick(place + old % (self.order().len() - place));
                patch.replace(old, value);
                patch.apply(&mut self.module)?;
            }
            Edit::Foreign { user, kind } => {
                let (_, user) = self.pick(*user);
                let refused = match kind {
                    0 => self.module.set_operand(user, 0, self.far),
                    1 => self.module.replace_uses(user, self.far),
                    2 => self.module.set_operand(user, 99, user),
                    _ => {
                        let mut patch = Patch::new();
                        let operand = Value::Old(user);
                        let new = patch.add(user, custom_call(), shape("f32[]"), [operand]);
                        patch.replace(self.far, new);
                        patch.apply(&mut self.module).map(|_| ())
                    }
                };
                return Err(refused.unwrap_err());
            }
        }
        Ok(())
    }

    /// Applies edits, refused ones without effect.
    fn apply_all(&mut self, edits: &[Edit]) {
        for edit in edits {
            let _ = self.apply(edit);
        }
    }

    /// Returns the operands of each instruction, its users in order, and the instructions that
    /// must run after it.
    fn links(&self) -> BTreeMap<InstId, Links> {
        let links = |id| {
            let after = self.module.extras(id).map_or(&[][..], |e| e.control_successors());
            (self.module.operands(id).to_vec(), self.module.uses(id).collect(), after.to_vec())
        };
        self.order().into_iter().map(|id| (id, links(id))).collect()
    }

    /// Asserts that everything that differs from an earlier state counts as edited since.
    fn assert_edited(&self, moment: Moment, before: &Self) {
        let edited = self.module.edited_since(moment);
        let (links, earlier) = (self.links(), before.links());
        for id in links.keys().chain(earlier.keys()).filter(|id| links.get(id) != earlier.get(id)) {
            let is_there = id.index() < self.module.instruction_bound();
            assert!(!is_there || edited.contains(id), "{id:?} of {edited:?}");
        }
        let [root, old] = [self, before].map(|world| world.module.computation(world.main).root());
        if root != old {
            assert!(root.is_none_or(|root| edited.contains(&root)), "{root:?} of {edited:?}");
        }
    }

    /// Edits all that is beside the graph.
    fn apply_beside(&mut self) {
        let (_, id) = self.pick(0);
        self.module.set_unique_id(id, 5);
        self.module.set_metadata(id, OpMetadata { op_name: "name".into(), ..Default::default() });
        self.module.set_computation_name(self.main, "renamed");
        self.module.set_execution_thread(self.main, Some("thread".into()));
        self.module.intern_shape(shape("s8[77]"));
        let other = self.module.add_computation_before("extra", self.main);
        self.module.set_entry(other);
        let main = self.main;
        self.module.retain_computations(|id| id == main);
    }

    /// Returns the data beside the graph, and the id that a new shape would get.
    fn beside(&self) -> String {
        let module = &self.module;
        let of = |id: &InstId| (module.unique_id(*id), module.metadata(*id).cloned());
        let instructions: Vec<_> = self.order().iter().map(of).collect();
        let main = module.computation(self.main);
        let next = module.clone().intern_shape(shape("u8[99]"));
        let computations = (module.computations(), module.entry(), main.name());
        format!("{instructions:?} {computations:?} {:?} {next:?}", main.execution_thread())
    }

    /// Use lists and control successors as operands and predecessors have them.
    fn check_lists(&self) {
        let module = &self.module;
        let mut uses: BTreeMap<InstId, Vec<Use>> = BTreeMap::new();
        let mut successors: BTreeMap<InstId, Vec<InstId>> = BTreeMap::new();
        for user in self.order() {
            for (operand, &value) in module.operands(user).iter().enumerate() {
                uses.entry(value).or_default().push(Use { user, operand });
            }
            for &before in module.extras(user).map_or(&[][..], |e| &e.control_predecessors) {
                successors.entry(before).or_default().push(user);
            }
        }
        for id in self.order() {
            let key = |u: &Use| (u.user, u.operand);
            let mut kept: Vec<Use> = module.uses(id).collect();
            assert_eq!(kept.len(), module.instruction(id).use_count());
            kept.sort_by_key(key);
            let mut expected = uses.remove(&id).unwrap_or_default();
            expected.sort_by_key(key);
            assert_eq!(kept, expected, "uses of {id:?}");
            let mut kept =
                module.extras(id).map_or(Vec::new(), |e| e.control_successors().to_vec());
            kept.sort();
            let mut expected = successors.remove(&id).unwrap_or_default();
            expected.sort();
            assert_eq!(kept, expected, "successors of {id:?}");
            assert!(module.extras(id).is_none_or(|e| !e.is_empty()));
            assert_eq!(module.instruction(id).parent(), Some(self.main));
        }
        let mut backwards: Vec<InstId> = module.instructions(self.main).rev().collect();
        backwards.reverse();
        assert_eq!(backwards, self.order());
        assert_eq!(module.computation(self.main).len(), self.order().len());
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn edits_keep_all_lists() {
    // How many edits of a kind there were, and how many of them changed something.
    let counts: RefCell<BTreeMap<&str, [usize; 2]>> = RefCell::default();
    let result = TestRunner::new(config()).run(&prop::collection::vec(edit(), 1..60), |edits| {
        let mut world = World::new();
        for edit in &edits {
            let before = picture(&world.module);
            let is_refused = world.apply(edit).is_err();
            let is_changed = picture(&world.module) != before;
            if is_refused {
                prop_assert!(!is_changed, "a refused edit: {:?}", edit);
            }
            if let Some(kind) = edit.kind() {
                let mut counts = counts.borrow_mut();
                let [tried, changed] = counts.entry(kind).or_default();
                *tried += 1;
                *changed += usize::from(is_changed);
            }
            world.check_lists();
        }
        // Names, order, uses, control edges, shapes: nothing is out of joint.
        prop_assert_eq!(check(&world.module), vec![]);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let counts = counts.into_inner();
    println!("of each kind, tried and changed: {counts:?}");
    assert_eq!(counts.len(), 8, "{counts:?}");
    for (kind, [tried, changed]) in counts {
        assert!(changed * 20 >= tried, "{kind}: {changed} of {tried} change something");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_differs_was_edited(
        [first, later] in prop::array::uniform2(prop::collection::vec(edit(), 0..30)),
        is_undone: bool,
    ) {
        let mut world = World::new();
        world.apply_all(&first);
        let (moment, before) = (world.module.moment(), world.clone());
        if is_undone {
            world.module.begin_trial();
            world.apply_all(&first);
            // Who asks now must hear of the edits, and later that they were undone.
            world.assert_edited(moment, &before);
            let (moment, before) = (world.module.moment(), world.clone());
            world.module.roll_back();
            world.assert_edited(moment, &before);
        }
        world.module.begin_trial();
        world.apply_all(&first);
        world.module.roll_back();
        if !is_undone {
            // Nobody asked for a moment in the trial.
            prop_assert_eq!(world.module.edited_since(moment), vec![]);
        }
        world.apply_all(&later);
        world.assert_edited(moment, &before);
        // The clone shares the moment, and is edited independently.
        prop_assert_eq!(before.module.edited_since(moment), vec![]);
        let mut other = before.clone();
        other.apply_all(&first);
        other.assert_edited(moment, &before);
        // A moment after an edit of one module tells nothing about another module.
        if !world.module.edited_since(moment).is_empty() {
            let all = before.module.edited_since(world.module.moment());
            prop_assert_eq!(all.len(), before.module.instruction_bound());
        }
    }

    #[test]
    fn a_clone_shares_moments_until_either_is_edited(edits in prop::collection::vec(edit(), 1..30)) {
        let mut world = World::new();
        let moment = world.module.moment();
        let mut clone = world.clone();
        prop_assert_eq!(world.module.moment(), moment);
        prop_assert_eq!(clone.module.edited_since(moment), vec![]);
        clone.apply_all(&edits);
        prop_assert_eq!(world.module.edited_since(moment), vec![]);
        clone.assert_edited(moment, &world);
    }

    #[test]
    fn a_trial_is_undone_or_kept(
        [first, tried, last] in prop::array::uniform3(prop::collection::vec(edit(), 0..30)),
    ) {
        let mut world = World::new();
        world.apply_all(&first);
        let mut undone = world.clone();
        undone.module.begin_trial();
        undone.apply_all(&tried);
        let edited = undone.module.tried();
        let beside = world.beside();
        let (links, tried_links) = (world.links(), undone.links());
        for (id, of) in &tried_links {
            prop_assert!(links.get(id) == Some(of) || edited.contains(id), "{:?}", id);
        }
        let root = |world: &World| world.module.computation(world.main).root();
        if root(&undone) != root(&world) {
            prop_assert!(root(&undone).is_some_and(|root| edited.contains(&root)));
        }
        undone.apply_beside();
        prop_assert_ne!(undone.beside(), beside.clone());
        undone.module.roll_back();
        prop_assert_eq!(undone.beside(), beside);
        prop_assert_eq!(picture(&undone.module), picture(&world.module));
        prop_assert_eq!(undone.links(), links);
        // Whatever comes next is the same, too: ids, names, orders of lists.
        let mut kept = world.clone();
        world.apply_all(&last);
        undone.apply_all(&last);
        prop_assert_eq!(picture(&undone.module), picture(&world.module));
        prop_assert_eq!(undone.links(), world.links());
        undone.check_lists();
        kept.module.begin_trial();
        kept.apply_all(&tried);
        kept.module.keep();
        kept.module.roll_back();
        prop_assert_eq!(kept.links(), tried_links);
    }
}
