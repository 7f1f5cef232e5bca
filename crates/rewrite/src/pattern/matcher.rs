//! Matches patterns against instructions, and says where an instruction differs from a pattern.

use std::cell::OnceCell;
use std::fmt;

use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, InstId, Module, Op, Opcode, Shape, Value};

use super::refused::Refused;
use super::{Condition, Operands, Pattern};

/// The most steps that are taken for one match. Each step looks at an instruction or tries a whole
/// match: each commutative op of a pattern doubles the ways to match the rest.
const MOST_STEPS: u32 = 4096;

/// An expression that matches a pattern, with the value of each name in the pattern.
#[derive(Clone, Debug)]
pub struct Match<'m> {
    module: &'m Module,
    root: InstId,
    bound: Bound,
    ops: Ops,
    /// The first name that was asked for and is not in the pattern.
    unknown: OnceCell<String>,
}

type Bound = SmallVec<[(&'static str, InstId); 6]>;
type Ops = SmallVec<[InstId; 6]>;

impl<'m> Match<'m> {
    /// The module of the expression.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// The instruction that the whole pattern matches.
    pub fn root(&self) -> InstId {
        self.root
    }

    /// The value with a name; `None` if the pattern has no such name, and then the rule does not
    /// apply: [`Rule::patch_or_why`](super::Rule::patch_or_why) names it.
    pub fn get(&self, name: &str) -> Option<InstId> {
        let found = self.bound.iter().find(|(other, _)| *other == name).map(|&(_, id)| id);
        if found.is_none() {
            self.unknown.get_or_init(|| name.to_owned());
        }
        found
    }

    /// The value with a name, for use in a [`Replacement`](super::Replacement); `None` if the
    /// pattern has no such name.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.get(name).map(Value::Old)
    }

    /// The op that computes the value with a name; `None` if the pattern has no such name.
    pub fn op(&self, name: &str) -> Option<&'m Op> {
        Some(self.module.op(self.get(name)?))
    }

    /// The shape of the value with a name; `None` if the pattern has no such name.
    pub fn shape(&self, name: &str) -> Option<&'m Shape> {
        Some(self.module.shape(self.get(name)?))
    }

    /// The shape of the array with a name; `None` if the pattern has no such name, or its value is
    /// no array.
    pub fn array(&self, name: &str) -> Option<&'m ArrayShape> {
        self.module.array_shape(self.get(name)?)
    }

    /// The instructions below the root that ops of the pattern matched, in its order, each once.
    pub(super) fn ops(&self) -> &[InstId] {
        &self.ops
    }

    /// The first name that was asked for and is not in the pattern.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.unknown.get().map(String::as_str)
    }
}

/// The first difference that was found between an expression and a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The name of the instruction that differs.
    pub instruction: String,
    /// The difference, as a sentence about the instruction: `it is ...`.
    pub why: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.instruction, self.why)
    }
}

/// The reason why an instruction does not match.
enum Reason<'p> {
    /// Its op is none of these.
    Opcode(&'p [Opcode]),
    /// It has another number of operands than this.
    OperandCount(usize),
    /// It carries attributes that a replacement would lose.
    Extras,
    /// It does not satisfy this condition.
    Condition(&'p Condition),
    /// The name already stands for this other value.
    Name(&'static str, InstId),
    /// The search was given up after [`MOST_STEPS`].
    Steps,
    /// The pattern matches, and the match was refused for this reason.
    Refused(Refused),
}

/// Returns the first match that `accept` takes, and the value that `accept` returns for it.
///
/// # Errors
/// Returns the mismatch before which most of the pattern was matched.
pub(super) fn search<'p, 'm, T>(
    pattern: &'p Pattern,
    module: &'m Module,
    id: InstId,
    accept: &dyn Fn(&Match<'m>) -> Result<T, Refused>,
) -> Result<(Match<'m>, T), Unmatched<'p>> {
    let mut search = MatchSearch {
        module,
        root: id,
        accept,
        goals: SmallVec::from_iter([(pattern, id)]),
        bound: Bound::new(),
        ops: Ops::new(),
        reached: 0,
        steps: 0,
        furthest: None,
    };
    let solved = search.solved();
    solved.ok_or(match search.furthest {
        Some((_, at, reason)) => Unmatched { at, reason },
        None => Unmatched { at: id, reason: Reason::Steps },
    })
}

/// A failed search.
pub(super) struct Unmatched<'p> {
    at: InstId,
    reason: Reason<'p>,
}

impl Unmatched<'_> {
    /// The reason why a match was refused, if the pattern matches.
    pub(super) fn refusal(&self) -> Option<&Refused> {
        match &self.reason {
            Reason::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns the mismatch in words for a person.
    pub(super) fn mismatch(&self, module: &Module) -> Mismatch {
        let at = self.refusal().and_then(Refused::place).unwrap_or(self.at);
        let why = self.reason.text(module, at);
        Mismatch { instruction: module.name_of(at).to_owned(), why }
    }
}

/// A search for the values that the names of a pattern stand for.
struct MatchSearch<'p, 'm, 'a, T> {
    module: &'m Module,
    root: InstId,
    /// The last goal.
    accept: &'a dyn Fn(&Match<'m>) -> Result<T, Refused>,
    /// The goals that are still to be matched, the next one last.
    goals: SmallVec<[(&'p Pattern, InstId); 8]>,
    /// The names that have a value so far.
    bound: Bound,
    ops: Ops,
    /// The number of goals reached.
    reached: u32,
    steps: u32,
    /// The first of the failures before which most goals were reached.
    furthest: Option<(u32, InstId, Reason<'p>)>,
}

impl<'p, 'm, T> MatchSearch<'p, 'm, '_, T> {
    /// Finds a match that reaches all goals, in some order of the operands of commutative ops.
    fn solved(&mut self) -> Option<(Match<'m>, T)> {
        while let Some((pattern, id)) = self.goals.pop() {
            self.steps += 1;
            if let Some(reason) = self.differs(pattern, id) {
                return self.fail(id, reason);
            }
            self.reached += 1;
            if let Some(name) = pattern.name
                && self.named(name).is_none()
            {
                self.bound.push((name, id));
            }
            if id != self.root && !pattern.opcodes().is_empty() && !self.ops.contains(&id) {
                self.ops.push(id);
            }
            let operands = self.module.operands(id);
            match (&pattern.operands, operands) {
                (Operands::Any, _) => {}
                (Operands::InOrder(patterns), _) => {
                    self.goals.extend(patterns.iter().zip(operands.iter().copied()).rev());
                }
                (Operands::EitherOrder(pair), &[a, b]) => return self.either(pair, [a, b]),
                (Operands::EitherOrder(_), _) => return None,
            }
        }
        self.accepted()
    }

    /// Finds a match that reaches the goals with two operands in one order, or else in the other.
    fn either(&mut self, pair: &'p [Pattern; 2], [a, b]: [InstId; 2]) -> Option<(Match<'m>, T)> {
        let before = (self.goals.clone(), self.bound.clone(), self.ops.clone(), self.reached);
        let [first, second] = pair;
        let orders = [(a, b), (b, a)];
        // Two operands with the same value have only one order.
        for &(one, other) in &orders[..if a == b { 1 } else { 2 }] {
            self.goals.push((second, other));
            self.goals.push((first, one));
            let solved = self.solved();
            if solved.is_some() {
                return solved;
            }
            (self.goals, self.bound, self.ops, self.reached) = before.clone();
        }
        None
    }

    /// Returns the match of the whole pattern, if it is accepted.
    fn accepted(&mut self) -> Option<(Match<'m>, T)> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return self.fail(self.root, Reason::Steps);
        }
        let found = Match {
            module: self.module,
            root: self.root,
            bound: self.bound.clone(),
            ops: self.ops.clone(),
            unknown: OnceCell::new(),
        };
        match (self.accept)(&found) {
            Ok(made) => Some((found, made)),
            Err(refusal) => self.fail(self.root, Reason::Refused(refusal)),
        }
    }

    fn fail<S>(&mut self, at: InstId, reason: Reason<'p>) -> Option<S> {
        if self.furthest.as_ref().is_none_or(|&(best, ..)| best < self.reached) {
            self.furthest = Some((self.reached, at, reason));
        }
        None
    }

    fn named(&self, name: &str) -> Option<InstId> {
        self.bound.iter().find(|(other, _)| *other == name).map(|&(_, id)| id)
    }

    /// The reason why an instruction does not match a pattern; `None` if it does. The patterns of
    /// its operands are not compared here.
    fn differs(&self, pattern: &'p Pattern, id: InstId) -> Option<Reason<'p>> {
        let module = self.module;
        let opcodes = pattern.opcodes();
        if !opcodes.is_empty() && !opcodes.contains(&module.opcode(id)) {
            return Some(Reason::Opcode(opcodes));
        }
        let count = match &pattern.operands {
            Operands::Any => None,
            Operands::InOrder(patterns) => Some(patterns.len()),
            Operands::EitherOrder(_) => Some(2),
        };
        if let Some(count) = count.filter(|&count| count != module.operands(id).len()) {
            return Some(Reason::OperandCount(count));
        }
        // A constant below the root is only read.
        let goes = id == self.root
            || !(opcodes.is_empty() || matches!(module.opcode(id), Opcode::Constant));
        if goes && !pattern.may_have_extras && module.extras(id).is_some() {
            return Some(Reason::Extras);
        }
        if self.steps > MOST_STEPS {
            return Some(Reason::Steps);
        }
        let bound = pattern.name.and_then(|name| Some((name, self.named(name)?)));
        if let Some((name, other)) = bound.filter(|&(_, other)| other != id) {
            return Some(Reason::Name(name, other));
        }
        let condition = pattern.conditions.iter().find(|each| !(each.holds)(module, id));
        condition.map(Reason::Condition)
    }
}

impl Reason<'_> {
    fn text(&self, module: &Module, at: InstId) -> String {
        match self {
            Self::Opcode(opcodes) => {
                let names: Vec<&str> = opcodes.iter().map(|opcode| opcode.name()).collect();
                format!("it is `{}`, not `{}`", module.opcode(at).name(), names.join("` or `"))
            }
            Self::OperandCount(count) => {
                format!("it has {} operands, not {count}", module.operands(at).len())
            }
            Self::Extras => Refused::Lost(at).to_string(),
            Self::Condition(condition) => format!("it must {}", condition.says),
            Self::Name(name, other) => {
                format!(
                    "it is not the value that `{name}` stands for, `{}`",
                    module.name_of(*other)
                )
            }
            Self::Steps => format!("no match was found in {MOST_STEPS} steps"),
            Self::Refused(refused) => refused.to_string(),
        }
    }
}
