//! Which dims of operands and results have one size, op by op.

use std::collections::HashMap;

use tilewright::ir::{CompId, DimRole, InstId, Module, Op, Relation};

use super::classes::Classes;
use crate::reduce::walk::all_instructions;

pub(super) fn link_all(module: &Module, classes: &mut Classes) {
    for id in all_instructions(module) {
        let mut linker = Linker { module, classes, id };
        if linker.link().is_none() {
            freeze(module, classes, id);
        }
    }
}

/// Keeps the sizes of all that an op takes, yields and hands to what it calls.
fn freeze(module: &Module, classes: &mut Classes, id: InstId) {
    let mut all = vec![id];
    all.extend(module.operands(id));
    for callee in module.called(id) {
        all.extend(module.computation(callee).parameters());
        all.extend(module.computation(callee).root());
    }
    for id in all {
        let slots = classes.slots.all(id);
        classes.freeze(&slots);
    }
}

/// Finds the links of one instruction.
struct Linker<'a> {
    module: &'a Module,
    classes: &'a mut Classes,
    id: InstId,
}

impl Linker<'_> {
    /// Links the dims; `None` if the rule is not clear.
    fn link(&mut self) -> Option<()> {
        let module = self.module;
        match module.op(self.id) {
            Op::AfterAll | Op::GetDimensionSize(_) | Op::PartitionId | Op::ReplicaId => Some(()),
            Op::Constant(literal) if literal.as_array().is_none() => None,
            Op::Reshape(_) | Op::Bitcast => self.reshape(),
            op => match Relation::of(module, self.id) {
                Some(relation) => {
                    self.related(&relation);
                    Some(())
                }
                None => self.structure(&op.clone()),
            },
        }
    }

    /// Links dims that have one index.
    fn related(&mut self, relation: &Relation) {
        let module = self.module;
        let operands = module.operands(self.id).iter();
        let mut arrays: Vec<Vec<usize>> = operands.flat_map(|&id| self.arrays(id)).collect();
        arrays.extend(self.arrays(self.id));
        let mut first: HashMap<usize, usize> = HashMap::new();
        let roles = relation.operands.iter().chain(&relation.results);
        for (slot, role) in
            arrays.iter().zip(roles).flat_map(|(slots, roles)| slots.iter().zip(roles))
        {
            match role {
                DimRole::Index(number) => {
                    let other = *first.entry(*number).or_insert(*slot);
                    self.classes.link(other, *slot);
                }
                DimRole::Fixed(_) => self.classes.freeze(&[*slot]),
                // A smaller part has a size of its own.
                DimRole::Part(_) => {}
            }
        }
    }

    /// Returns the dims of each array of a value.
    fn arrays(&self, id: InstId) -> Vec<Vec<usize>> {
        let leaves = self.module.shape(id).leaves().into_iter().enumerate();
        let arrays = leaves.filter(|(_, leaf)| leaf.as_array().is_some());
        arrays.map(|(leaf, _)| self.classes.slots.leaf(id, leaf)).collect()
    }

    /// Links what tuples, calls, loops and branches hand on.
    fn structure(&mut self, op: &Op) -> Option<()> {
        let module = self.module;
        let operands = module.operands(self.id);
        match op {
            Op::Tuple => {
                let mut leaf = 0usize;
                for &operand in operands {
                    for own in 0..self.classes.slots.leaves(operand) {
                        let a = self.classes.slots.leaf(operand, own);
                        let b = self.classes.slots.leaf(self.id, leaf);
                        self.classes.link_each(&a, &b);
                        leaf = leaf.saturating_add(1);
                    }
                }
            }
            Op::GetTupleElement(attrs) => {
                let tuple = self.operand(0)?;
                let elements = module.shape(tuple).as_tuple()?;
                let before = elements.get(..usize::try_from(attrs.index).ok()?)?;
                let first: usize = before.iter().map(|shape| shape.leaves().len()).sum();
                for leaf in 0..self.classes.slots.leaves(self.id) {
                    let a = self.classes.slots.leaf(tuple, first.checked_add(leaf)?);
                    let b = self.classes.slots.leaf(self.id, leaf);
                    self.classes.link_each(&a, &b);
                }
            }
            Op::Call(attrs) => self.called(attrs.to_apply, operands)?,
            Op::Fusion(attrs) => self.called(attrs.calls, operands)?,
            Op::While(attrs) => {
                self.called(attrs.body, operands)?;
                let state = *module.computation(attrs.condition).parameters().first()?;
                self.whole(state, *operands.first()?);
                self.whole(*operands.first()?, self.id);
            }
            Op::Conditional(_) => {
                for (callee, &argument) in module.called(self.id).iter().zip(operands.get(1..)?) {
                    self.called(*callee, &[argument])?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn called(&mut self, callee: CompId, arguments: &[InstId]) -> Option<()> {
        let computation = self.module.computation(callee);
        for (&parameter, &argument) in computation.parameters().iter().zip(arguments) {
            self.whole(parameter, argument);
        }
        self.whole(computation.root()?, self.id);
        Some(())
    }

    fn operand(&self, number: usize) -> Option<InstId> {
        self.module.operands(self.id).get(number).copied()
    }

    /// Returns the dims of an operand that is an array.
    fn array(&self, number: usize) -> Option<Vec<usize>> {
        let operand = self.operand(number)?;
        self.module.array_shape(operand)?;
        Some(self.classes.slots.leaf(operand, 0))
    }

    /// Returns the dims of the result, or of its first array.
    fn result(&self) -> Vec<usize> {
        self.classes.slots.leaf(self.id, 0)
    }

    /// Links two values of one shape.
    fn whole(&mut self, a: InstId, b: InstId) {
        let (a, b) = (self.classes.slots.all(a), self.classes.slots.all(b));
        self.classes.link_each(&a, &b);
    }

    /// Links groups of dims with one product: dim to dim, or a dim to its factors.
    fn reshape(&mut self) -> Option<()> {
        let (from, to) = (self.array(0)?, self.result());
        self.module.array_shape(self.id)?;
        let sizes = |slots: &[usize], classes: &Classes| -> Option<Vec<(usize, i64)>> {
            let own = |&slot: &usize| Some((slot, *classes.slots.sizes.get(slot)?));
            let all: Vec<(usize, i64)> = slots.iter().map(own).collect::<Option<_>>()?;
            // Dims of size 1 stay as they are, wherever they stand.
            Some(all.into_iter().filter(|&(_, size)| size != 1).collect())
        };
        let (a, b) = (sizes(&from, self.classes)?, sizes(&to, self.classes)?);
        let ones: Vec<usize> = from.iter().chain(&to).copied().collect();
        let ones: Vec<usize> =
            ones.into_iter().filter(|&s| self.classes.slots.sizes.get(s) == Some(&1)).collect();
        self.classes.freeze(&ones);
        if a.iter().chain(&b).any(|&(_, size)| size < 1) {
            return None;
        }
        let (mut a, mut b) = (a.as_slice(), b.as_slice());
        while let (Some((&first_a, rest_a)), Some((&first_b, rest_b))) =
            (a.split_first(), b.split_first())
        {
            (a, b) = (rest_a, rest_b);
            let (mut of_a, mut of_b) = (vec![first_a.0], vec![first_b.0]);
            let (mut product_a, mut product_b) = (first_a.1, first_b.1);
            while product_a != product_b {
                let (rest, group, product) = if product_a < product_b {
                    (&mut a, &mut of_a, &mut product_a)
                } else {
                    (&mut b, &mut of_b, &mut product_b)
                };
                let (&(slot, size), tail) = rest.split_first()?;
                *rest = tail;
                group.push(slot);
                *product = product.checked_mul(size)?;
            }
            self.group(of_a, of_b);
        }
        Some(())
    }

    fn group(&mut self, a: Vec<usize>, b: Vec<usize>) {
        match (a.as_slice(), b.as_slice()) {
            (&[a], &[b]) => self.classes.link(a, b),
            (&[whole], _) => self.classes.product(whole, b),
            (_, &[whole]) => self.classes.product(whole, a),
            _ => {
                self.classes.freeze(&a);
                self.classes.freeze(&b);
            }
        }
    }
}
