//! The shape rule of every op: what the right operands yield, and what is said
//! of wrong ones. Expected shapes are worked out by hand from XLA's operation
//! semantics, not from the rules.
mod collective;
mod contract;
mod control;
mod elementwise;
mod indexing;
mod linalg;
mod mixed;
mod reduce;
mod shaping;
mod window;

use crate::common;

use tilewright_ir::{CompId, Module, Op, Shape, ShapeErrorKind, infer_shape};

/// Where called computations are made.
#[derive(Default)]
struct Rules {
    module: Module,
}

impl Rules {
    /// Returns a computation that takes and yields these.
    fn callee(&mut self, parameters: &[&str], result: &str) -> CompId {
        common::callee(&mut self.module, "callee", parameters, result)
    }

    fn of(&self, op: Op, operands: &[&str]) -> Case<'_> {
        let operands = operands.iter().map(|text| common::shape(text)).collect();
        Case { module: &self.module, op, operands, declared: None }
    }
}

/// One question to a rule.
struct Case<'a> {
    module: &'a Module,
    op: Op,
    operands: Vec<Shape>,
    declared: Option<Shape>,
}

impl Case<'_> {
    fn declared(mut self, text: &str) -> Self {
        self.declared = Some(common::shape(text));
        self
    }

    #[track_caller]
    fn gives(self, expected: &str) {
        let operands: Vec<&Shape> = self.operands.iter().collect();
        let what = format!("{:?} of {:?}", self.op, self.operands);
        match infer_shape(self.module, &self.op, &operands, self.declared.as_ref()) {
            Ok(shape) => assert_eq!(shape.to_string(), expected, "{what}"),
            Err(error) => assert_eq!(error.to_string(), expected, "{what}"),
        }
    }

    /// The rule refuses, with a message that has this part.
    #[track_caller]
    fn fails(self, kind: ShapeErrorKind, part: &str) {
        let operands: Vec<&Shape> = self.operands.iter().collect();
        let what = format!("{:?} of {:?}", self.op, self.operands);
        let declared = self.declared.as_ref();
        let error = match infer_shape(self.module, &self.op, &operands, declared) {
            Ok(shape) => panic!("{shape} is the shape of {what}"),
            Err(error) => error,
        };
        assert_eq!(error.kind, kind, "{error}: {what}");
        assert!(error.message.contains(part), "{error}\nhas no `{part}`: {what}");
    }
}

/// Returns a rule without called computations.
fn of(op: Op, operands: &[&str]) -> Case<'static> {
    static NO_CALLEES: std::sync::OnceLock<Module> = std::sync::OnceLock::new();
    let operands = operands.iter().map(|text| common::shape(text)).collect();
    Case { module: NO_CALLEES.get_or_init(Module::default), op, operands, declared: None }
}

#[test]
fn every_op_counts_its_operands() {
    let mut asked = 0;
    for &opcode in tilewright_ir::Opcode::ALL {
        let arity = opcode.arity();
        // Too few and too many; the count is checked before anything else.
        let wrong = [arity.min.checked_sub(1), arity.max.map(|max| max + 1)];
        let Some(op) = any_op(opcode) else { continue };
        for count in wrong.into_iter().flatten() {
            let part = format!("`{opcode}` takes {arity}, not {count}");
            of(op.clone(), &vec!["f32[2]"; count]).fails(ShapeErrorKind::OperandCount, &part);
            asked += 1;
        }
    }
    // Ops that need attributes are asked elsewhere.
    println!("{asked} wrong counts");
    assert!(asked >= 80, "{asked} wrong counts");
}

/// Returns the op of an opcode with no attributes to speak of, if it needs none.
fn any_op(opcode: tilewright_ir::Opcode) -> Option<Op> {
    Op::from_attrs(opcode, &mut Default::default()).ok()
}
