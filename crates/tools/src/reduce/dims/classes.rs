//! Dims that have one size, and dims that are products of others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use petgraph::unionfind::UnionFind;
use tilewright::ir::{ArrayShape, InstId, Module, Shape};

use super::links::link_all;
use crate::reduce::walk::all_instructions;

/// The dims of all arrays of a module: slots, numbered in order.
pub(super) struct Slots {
    /// For each instruction the slots of each leaf of its shape; none for leaves that are no arrays.
    of: HashMap<InstId, Vec<Range<usize>>>,
    /// The sizes.
    pub(super) sizes: Vec<i64>,
}

impl Slots {
    fn of(module: &Module) -> Self {
        let mut slots = Self { of: HashMap::new(), sizes: Vec::new() };
        for id in all_instructions(module) {
            let leaves = module.shape(id).leaves().into_iter().map(|leaf| {
                let first = slots.sizes.len();
                slots.sizes.extend(leaf.as_array().map_or(&[][..], ArrayShape::dims));
                first..slots.sizes.len()
            });
            let leaves = leaves.collect();
            slots.of.insert(id, leaves);
        }
        slots
    }

    /// Returns the slots of a leaf of an instruction's shape; none if it is no array.
    pub(super) fn leaf(&self, id: InstId, leaf: usize) -> Vec<usize> {
        let slots = self.of.get(&id).and_then(|leaves| leaves.get(leaf)).cloned();
        slots.unwrap_or_default().collect()
    }

    /// Returns the number of leaves of an instruction's shape.
    pub(super) fn leaves(&self, id: InstId) -> usize {
        self.of.get(&id).map_or(0, Vec::len)
    }

    /// Returns all slots of an instruction.
    pub(super) fn all(&self, id: InstId) -> Vec<usize> {
        (0..self.leaves(id)).flat_map(|leaf| self.leaf(id, leaf)).collect()
    }
}

/// Slots with one size.
pub(super) struct Classes {
    pub(super) slots: Slots,
    one_size: UnionFind<usize>,
    /// By slot; after [`Self::settle`] also by the representative of the class.
    frozen: Vec<bool>,
    /// Slots that are the product of others.
    products: Vec<(usize, Vec<usize>)>,
    /// The same by the representatives of classes.
    derived: BTreeMap<usize, Vec<usize>>,
}

impl Classes {
    pub(super) fn of(module: &Module) -> Self {
        let slots = Slots::of(module);
        let count = slots.sizes.len();
        let mut classes = Self {
            slots,
            one_size: UnionFind::new(count),
            frozen: vec![false; count],
            products: Vec::new(),
            derived: BTreeMap::new(),
        };
        classes.freeze_dynamic(module);
        link_all(module, &mut classes);
        classes.settle();
        classes
    }

    fn freeze_dynamic(&mut self, module: &Module) {
        for id in all_instructions(module) {
            for (leaf, shape) in module.shape(id).leaves().into_iter().enumerate() {
                let Shape::Array(array) = shape else { continue };
                if !array.is_static() {
                    self.freeze(&self.slots.leaf(id, leaf));
                }
            }
        }
    }

    /// States that two slots have one size. Slots of different sizes keep theirs.
    pub(super) fn link(&mut self, a: usize, b: usize) {
        if self.slots.sizes.get(a) == self.slots.sizes.get(b) {
            self.one_size.union(a, b);
        } else {
            self.freeze(&[a, b]);
        }
    }

    /// States that slots have the same sizes, in order.
    pub(super) fn link_each(&mut self, a: &[usize], b: &[usize]) {
        if a.len() == b.len() {
            a.iter().zip(b).for_each(|(&a, &b)| self.link(a, b));
        } else {
            self.freeze(a);
            self.freeze(b);
        }
    }

    /// States that slots keep their sizes.
    pub(super) fn freeze(&mut self, slots: &[usize]) {
        for &slot in slots {
            if let Some(frozen) = self.frozen.get_mut(slot) {
                *frozen = true;
            }
        }
    }

    /// States that a slot is the product of others.
    pub(super) fn product(&mut self, whole: usize, factors: Vec<usize>) {
        self.products.push((whole, factors));
    }

    /// Brings what is known of slots to classes, until nothing more follows.
    fn settle(&mut self) {
        // Each turn joins classes or freezes one, or is the last.
        for _ in 0..=self.slots.sizes.len() {
            self.derived.clear();
            let mut changed = false;
            for (whole, factors) in self.products.clone() {
                let whole = self.one_size.find(whole);
                let factors: Vec<usize> =
                    factors.iter().map(|&factor| self.one_size.find(factor)).collect();
                changed |= self.derive(whole, factors);
            }
            changed |= self.freeze_classes();
            if !changed {
                return;
            }
        }
    }

    fn derive(&mut self, whole: usize, factors: Vec<usize>) -> bool {
        let Some(known) = self.derived.get(&whole) else {
            self.derived.insert(whole, factors);
            return false;
        };
        let known = known.clone();
        let sizes = |slots: &[usize]| -> Vec<Option<i64>> {
            slots.iter().map(|&slot| self.slots.sizes.get(slot).copied()).collect()
        };
        if sizes(&known) != sizes(&factors) {
            let before = self.is_frozen(whole) && factors.iter().all(|&f| self.is_frozen(f));
            self.freeze(&[whole]);
            self.freeze(&factors);
            return !before;
        }
        let mut changed = false;
        for (&a, &b) in known.iter().zip(&factors) {
            changed |= self.one_size.union(a, b);
        }
        changed
    }

    /// Freezes classes with a frozen slot, the factors of frozen products and all that would be a
    /// product of itself.
    fn freeze_classes(&mut self) -> bool {
        let mut changed = false;
        for slot in 0..self.frozen.len() {
            let class = self.one_size.find(slot);
            if self.is_frozen(slot) && !self.is_frozen(class) {
                self.freeze(&[class]);
                changed = true;
            }
        }
        for (whole, factors) in self.derived.clone() {
            let is_cyclic = factors.contains(&whole)
                || factors.iter().any(|factor| self.derived.contains_key(factor));
            let is_fixed = self.is_frozen(whole) || is_cyclic;
            let is_free = !self.is_frozen(whole) || factors.iter().any(|&f| !self.is_frozen(f));
            if is_fixed && is_free {
                self.freeze(&[whole]);
                self.freeze(&factors);
                changed = true;
            }
        }
        changed
    }

    fn is_frozen(&self, slot: usize) -> bool {
        self.frozen.get(slot).copied().unwrap_or(true)
    }

    /// Returns the classes whose size can be chosen and is larger than `size`.
    pub(super) fn free(&self, size: i64) -> impl Iterator<Item = usize> + '_ {
        let slots = self.slots.sizes.iter().enumerate();
        slots
            .filter(move |&(slot, &own)| {
                own > size
                    && self.one_size.find(slot) == slot
                    && !self.is_frozen(slot)
                    && !self.derived.contains_key(&slot)
            })
            .map(|(slot, _)| slot)
    }

    /// Returns the sizes of all slots if these classes have another one; `None` if a product
    /// exceeds 64 bits.
    pub(super) fn with_sizes(&self, changed: &[usize], size: i64) -> Option<Vec<i64>> {
        let changed: HashSet<usize> = changed.iter().copied().collect();
        let mut sizes: Vec<i64> = (0..self.slots.sizes.len())
            .map(|slot| {
                let class = self.one_size.find(slot);
                if changed.contains(&class) { Some(size) } else { self.own_size(slot) }
            })
            .collect::<Option<_>>()?;
        for slot in 0..sizes.len() {
            let Some(factors) = self.derived.get(&self.one_size.find(slot)) else { continue };
            let product = factors
                .iter()
                .try_fold(1i64, |product, &factor| product.checked_mul(*sizes.get(factor)?))?;
            *sizes.get_mut(slot)? = product;
        }
        Some(sizes)
    }

    fn own_size(&self, slot: usize) -> Option<i64> {
        self.slots.sizes.get(slot).copied()
    }
}
