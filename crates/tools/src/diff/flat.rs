//! Values seen through fusions and calls, and what moved into or out of them.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright::ir::{CompId, Entity as _, InstId, Op, Opcode};

use super::interner::{Class, Interner, Parts, number};
use super::matching::Matching;
use super::pairing::unique_pairs;
use super::side::Side;

/// The classes of values as if every fusion and call were expanded: an instruction has the same
/// class before and after it is fused. Indexed by instruction.
pub(super) struct Flat {
    pub(super) of_a: Vec<Class>,
    pub(super) of_b: Vec<Class>,
}

impl Flat {
    /// Classifies both modules. The parameters of computations that are not expanded are equal if
    /// the computations are partners.
    pub(super) fn new(
        matching: &Matching,
        a: &Side<'_>,
        b: &Side<'_>,
        parts: &mut Interner<Parts>,
    ) -> Self {
        // The first class that only numbers of computations have.
        let own = |id: CompId, side: u32| Parts::from_slice(&[u32::MAX, side, number(id.index())]);
        let mut roots = Expansion::new(a, parts, |id| own(id, 0));
        roots.run();
        let of_a = roots.flat;
        let shared = |id: CompId| match matching.computation_a(id) {
            Some(partner) => own(partner, 0),
            None => own(id, 1),
        };
        let mut roots = Expansion::new(b, parts, shared);
        roots.run();
        Self { of_a, of_b: roots.flat }
    }

    /// The same classes, seen from the other module.
    pub(super) fn mirrored(self) -> Self {
        Self { of_a: self.of_b, of_b: self.of_a }
    }

    /// Checks whether two instructions compute the same value.
    pub(super) fn same(&self, a: InstId, b: InstId) -> bool {
        self.of_a.get(a.index()) == self.of_b.get(b.index())
    }
}

/// A walk through computations, each expanded one within its caller.
struct Expansion<'s, 'm, N> {
    side: &'s Side<'m>,
    parts: &'s mut Interner<Parts>,
    /// Tells the parameters of computations apart.
    own: N,
    flat: Vec<Class>,
    /// The elements of tuples, by the class of the tuple.
    elements: FxHashMap<Class, Vec<Class>>,
    done: FxHashSet<CompId>,
}

impl<'s, 'm, N: Fn(CompId) -> Parts> Expansion<'s, 'm, N> {
    fn new(side: &'s Side<'m>, parts: &'s mut Interner<Parts>, own: N) -> Self {
        Self {
            side,
            parts,
            own,
            flat: vec![0; side.module.instruction_bound()],
            elements: FxHashMap::default(),
            done: FxHashSet::default(),
        }
    }

    /// Callers come first: what they expand is done when its turn comes.
    fn run(&mut self) {
        let module = self.side.module;
        for &id in module.computations().iter().rev() {
            if !self.done.contains(&id) && self.expanded_by(id).is_none() {
                self.computation(id);
            }
        }
        // Computations that only themselves reach: the verifier accepts none, but none is left out.
        for &id in module.computations() {
            if !self.done.contains(&id) {
                self.computation(id);
            }
        }
    }

    /// Returns the fusion or call that alone calls a computation.
    fn expanded_by(&self, id: CompId) -> Option<InstId> {
        match self.side.callers.get(&id).map(Vec::as_slice) {
            Some(&[caller]) => {
                let opcode = self.side.module.opcode(caller);
                matches!(opcode, Opcode::Fusion | Opcode::Call).then_some(caller)
            }
            _ => None,
        }
    }

    /// Goes through a computation and those expanded in it, with a stack of its own.
    fn computation(&mut self, id: CompId) {
        let module = self.side.module;
        self.done.insert(id);
        let mut stack = vec![(id, module.instructions(id))];
        while let Some((computation, mut rest)) = stack.pop() {
            let Some(id) = rest.next() else {
                if let (Some(caller), Some(root)) =
                    (self.expanded_by(computation), module.computation(computation).root())
                    && let Some(&class) = self.flat.get(root.index())
                    && !stack.is_empty()
                {
                    self.set(caller, class);
                }
                continue;
            };
            stack.push((computation, rest));
            let inner = module.called(id).first().copied();
            match inner.filter(|&inner| self.expanded_by(inner) == Some(id)) {
                Some(inner) if self.done.insert(inner) => {
                    stack.push((inner, module.instructions(inner)));
                }
                _ => self.instruction(computation, id),
            }
        }
    }

    fn instruction(&mut self, computation: CompId, id: InstId) {
        let module = self.side.module;
        let operand = |at: usize| module.operands(id).get(at).map(|of| self.flat[of.index()]);
        let class = match module.op(id) {
            Op::Parameter(parameter) => {
                let place = usize::try_from(parameter.number).unwrap_or(usize::MAX);
                let given = self.expanded_by(computation).and_then(|caller| {
                    let given = *module.operands(caller).get(place)?;
                    Some(self.flat[given.index()])
                });
                given.unwrap_or_else(|| {
                    let mut key = (self.own)(computation);
                    key.push(number(place));
                    self.parts.class(key)
                })
            }
            Op::GetTupleElement(attrs) => {
                let place = usize::try_from(attrs.index).unwrap_or(usize::MAX);
                let elements = operand(0).and_then(|tuple| self.elements.get(&tuple));
                match elements.and_then(|elements| elements.get(place)) {
                    Some(&element) => element,
                    None => self.plain(id),
                }
            }
            _ => self.plain(id),
        };
        if module.opcode(id) == Opcode::Tuple {
            let elements = module.operands(id).iter().map(|of| self.flat[of.index()]).collect();
            self.elements.insert(class, elements);
        }
        self.set(id, class);
    }

    fn plain(&mut self, id: InstId) -> Class {
        let side = self.side;
        let mut key = Parts::from_slice(&[side.core[id.index()]]);
        key.extend(side.module.operands(id).iter().map(|of| self.flat[of.index()]));
        let called = side.module.called(id);
        key.extend(called.iter().map(|callee| side.core_body.get(callee).copied().unwrap_or(0)));
        self.parts.class(key)
    }

    fn set(&mut self, id: InstId, class: Class) {
        if let Some(slot) = self.flat.get_mut(id.index()) {
            *slot = class;
        }
    }
}

/// Pairs instructions of equal value in different computations, among those without partners. Two
/// computations without partners may still become partners: nothing moves between them before
/// the computations are `settled`.
pub(super) fn moved(
    matching: &mut Matching,
    a: &Side<'_>,
    b: &Side<'_>,
    flat: &Flat,
    settled: bool,
) {
    let may_move = |matching: &Matching, x: InstId, y: InstId| {
        let parents = (a.module.instruction(x).parent(), b.module.instruction(y).parent());
        let has_partner = parents.0.is_some_and(|id| matching.computation_b(id).is_some())
            || parents.1.is_some_and(|id| matching.computation_a(id).is_some());
        (settled || has_partner) && is_elsewhere(matching, a, b, x, y)
    };
    let movable = |side: &Side<'_>, id: InstId| {
        !matches!(side.module.opcode(id), Opcode::Parameter | Opcode::Fusion | Opcode::Call)
    };
    let free = |side: &Side<'_>, is_free: &dyn Fn(InstId) -> bool| -> Vec<InstId> {
        let ids = side.module.computations().iter().flat_map(|&id| side.module.instructions(id));
        ids.filter(|&id| is_free(id) && movable(side, id)).collect()
    };
    let of_a = free(a, &|id| matching.b_of(id).is_none());
    let of_b = free(b, &|id| matching.a_of(id).is_none());
    let named = unique_pairs(
        of_a.iter().copied(),
        |id| Some((flat.of_a.get(id.index()), a.module.name_of(id))),
        of_b.iter().copied(),
        |id| Some((flat.of_b.get(id.index()), b.module.name_of(id))),
    );
    let mut pools: FxHashMap<Class, Vec<InstId>> = FxHashMap::default();
    for &id in of_b.iter().rev() {
        pools.entry(flat.of_b[id.index()]).or_default().push(id);
    }
    for (x, y) in named {
        if may_move(matching, x, y) {
            matching.pair(x, y);
        }
    }
    for x in of_a {
        if matching.b_of(x).is_some() {
            continue;
        }
        let Some(pool) = pools.get_mut(&flat.of_a[x.index()]) else { continue };
        while pool.last().is_some_and(|&y| matching.a_of(y).is_some()) {
            pool.pop();
        }
        if let Some(&y) = pool.last()
            && may_move(matching, x, y)
        {
            matching.pair(x, y);
        }
    }
}

/// Checks whether two instructions stand in computations that are not partners.
pub(super) fn is_elsewhere(
    matching: &Matching,
    a: &Side<'_>,
    b: &Side<'_>,
    x: InstId,
    y: InstId,
) -> bool {
    let parent = a.module.instruction(x).parent();
    parent.and_then(|parent| matching.computation_b(parent)) != b.module.instruction(y).parent()
}
