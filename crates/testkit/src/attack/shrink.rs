//! Smaller programs that still fail.

use tilewright_ir::{
    ArrayLiteral, ElementType, InstId, Literal, Module, Op, Position, Shape, Verified, verify,
};

use crate::generate::graph::data;

/// Returns the smallest module found that still fails: with fewer outputs, and with
/// instructions left out, made parameters or made constants. `tries` bounds how many are looked
/// at.
pub fn shrunk(module: &Verified, tries: usize, fails: &dyn Fn(&Verified) -> bool) -> Verified {
    let mut shrinker = Shrinker { best: module.clone(), left: tries, fails };
    shrinker.outputs();
    while shrinker.instructions() {}
    shrinker.best
}

struct Shrinker<'a> {
    best: Verified,
    left: usize,
    fails: &'a dyn Fn(&Verified) -> bool,
}

impl Shrinker<'_> {
    /// Keeps a smaller module if it verifies and fails.
    fn keep(&mut self, smaller: Option<Module>) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let Some(verified) = smaller.and_then(|module| verify(module).ok()) else { return false };
        let fails = (self.fails)(&verified);
        if fails {
            self.best = verified;
        }
        fails
    }

    /// Keeps one output of several, if one alone fails.
    fn outputs(&mut self) {
        let Some(root) = root(&self.best) else { return };
        if !matches!(self.best.op(root), Op::Tuple) {
            return;
        }
        for output in self.best.operands(root).to_vec() {
            if self.keep(with_root(&self.best, output)) {
                return;
            }
        }
    }

    /// Tries to leave out each instruction once, the last first; whether one was.
    fn instructions(&mut self) -> bool {
        let mut any = false;
        let ids: Vec<InstId> = match self.best.entry() {
            Some(entry) => self.best.instructions(entry).collect(),
            None => Vec::new(),
        };
        for id in ids.into_iter().rev() {
            let alive = self.best.instruction(id).parent().is_some();
            if alive && !matches!(self.best.op(id), Op::Constant(_) | Op::Tuple) {
                any |= self.instruction(id);
            }
        }
        any && self.left > 0
    }

    fn instruction(&mut self, id: InstId) -> bool {
        let shape = self.best.shape(id);
        let same = self.best.operands(id).iter().copied();
        let same: Vec<InstId> =
            same.filter(|&operand| self.best.shape(operand).compatible(shape)).collect();
        for operand in same {
            if self.keep(replaced(&self.best, id, operand)) {
                return true;
            }
        }
        if matches!(self.best.op(id), Op::Broadcast(_)) && is_splat(&self.best, id) {
            return false;
        }
        let becomes_parameter = !matches!(self.best.op(id), Op::Parameter(_))
            && self.keep(with_parameter(&self.best, id));
        becomes_parameter
            || self.keep(with_constant(&self.best, id, 1.0))
            || self.keep(with_constant(&self.best, id, 0.0))
    }
}

fn root(module: &Module) -> Option<InstId> {
    module.computation(module.entry()?).root()
}

fn is_splat(module: &Module, id: InstId) -> bool {
    module.operands(id).iter().all(|&operand| module.constant(operand).is_some())
}

fn with_root(module: &Verified, output: InstId) -> Option<Module> {
    let mut module = Module::clone(module);
    module.set_root(output).ok()?;
    Some(swept(module))
}

/// Returns the module with the uses of one value going to another.
fn replaced(module: &Verified, old: InstId, new: InstId) -> Option<Module> {
    let mut module = Module::clone(module);
    module.replace_uses(old, new).ok()?;
    Some(swept(module))
}

fn with_parameter(module: &Verified, id: InstId) -> Option<Module> {
    let mut module = Module::clone(module);
    let number = module.computation(module.entry()?).parameters().len();
    let number = i64::try_from(number).ok()?;
    let op = Op::Parameter(Box::new(tilewright_ir::ops::shaping::ParameterAttrs { number }));
    let (shape, name) = (module.shape(id).without_layout(), module.fresh_name("cut"));
    let new = module.insert(Position::Before(id), op, shape, &[], name).ok()?;
    module.replace_uses(id, new).ok()?;
    Some(swept(module))
}

/// Returns the module with a number in all places of a value.
fn with_constant(module: &Verified, id: InstId, number: f64) -> Option<Module> {
    let mut module = Module::clone(module);
    let shape = module.array_shape(id)?.without_layout();
    let element: ElementType = shape.element_type;
    let scalar = ArrayLiteral::new(element, [], data(element, &[number])).ok()?;
    let scalar = Op::Constant(Box::new(Literal::Array(scalar)));
    let (at, name) = (Position::Before(id), module.fresh_name("number"));
    let mut new = module.insert(at, scalar, Shape::scalar(element), &[], name).ok()?;
    if shape.rank() > 0 {
        let attrs = tilewright_ir::ops::shaping::BroadcastAttrs { dimensions: Default::default() };
        let (op, name) = (Op::Broadcast(Box::new(attrs)), module.fresh_name("numbers"));
        new = module.insert(at, op, Shape::Array(shape), &[new], name).ok()?;
    }
    module.replace_uses(id, new).ok()?;
    Some(swept(module))
}

/// Without what nothing uses. Parameters stay, so that each keeps its numbers.
fn swept(mut module: Module) -> Module {
    let Some(entry) = module.entry() else { return module };
    let ids: Vec<InstId> = module.instructions(entry).collect();
    for id in ids.into_iter().rev() {
        if module.is_removable(id) {
            let _ = module.remove(id);
        }
    }
    module
}
