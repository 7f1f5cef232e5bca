//! Matches patterns against instructions, and says where an instruction differs from a pattern.

use std::fmt;

use smallvec::SmallVec;
use tilewright_ir::{ArrayShape, InstId, Module, Op, Opcode, Shape, Value};

use super::{Condition, Operands, Pattern};

/// The most instructions visited for one match. The limit is needed because each commutative op of
/// a pattern doubles the number of ways to match the rest of the pattern.
const MOST_STEPS: u32 = 4096;

/// An expression that matches a pattern, with the value of each name in the pattern.
#[derive(Clone, Debug)]
pub struct Match<'m> {
    module: &'m Module,
    root: InstId,
    bound: Bound,
}

type Bound = SmallVec<[(&'static str, InstId); 6]>;

impl<'m> Match<'m> {
    /// The module of the expression.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// The instruction that the whole pattern matches.
    pub fn root(&self) -> InstId {
        self.root
    }

    /// The instruction that computes the value with a name; `None` if the pattern has no such name.
    pub fn get(&self, name: &str) -> Option<InstId> {
        self.bound.iter().find(|(other, _)| *other == name).map(|&(_, id)| id)
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

/// The reason why an instruction does not match a pattern.
#[derive(Clone, Copy)]
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
}

pub(super) fn matched<'m>(pattern: &Pattern, module: &'m Module, id: InstId) -> Option<Match<'m>> {
    let mut search = Search::new(module);
    search.goals.push((pattern, id));
    search.is_solved().then_some(Match { module, root: id, bound: search.bound })
}

pub(super) fn matched_or_why<'m>(
    pattern: &Pattern,
    module: &'m Module,
    id: InstId,
) -> Result<Match<'m>, Mismatch> {
    let mut search = Search::new(module);
    search.goals.push((pattern, id));
    if search.is_solved() {
        return Ok(Match { module, root: id, bound: search.bound });
    }
    let (at, reason) = search.furthest.map_or((id, Reason::Steps), |(_, at, reason)| (at, reason));
    Err(Mismatch { instruction: module.name_of(at).to_owned(), why: reason.text(module, at) })
}

/// A search for the values that the names of a pattern stand for. A *goal* is a pattern and the
/// instruction that it has to match.
struct Search<'p, 'm> {
    module: &'m Module,
    /// The goals that are not reached yet; the last one is tried next.
    goals: SmallVec<[(&'p Pattern, InstId); 8]>,
    /// The names that have a value so far.
    bound: Bound,
    /// The number of instructions visited.
    steps: u32,
    /// The failed goal before which the most goals were reached, with that number of goals.
    furthest: Option<(u32, InstId, Reason<'p>)>,
}

impl<'p, 'm> Search<'p, 'm> {
    fn new(module: &'m Module) -> Self {
        Self { module, goals: SmallVec::new(), bound: Bound::new(), steps: 0, furthest: None }
    }

    /// Whether all goals can be reached if commutative ops may take their operands in any order.
    fn is_solved(&mut self) -> bool {
        let mut reached = 0;
        while let Some((pattern, id)) = self.goals.pop() {
            self.steps += 1;
            if let Some(reason) = self.differs(pattern, id) {
                if self.furthest.as_ref().is_none_or(|&(best, ..)| best < reached) {
                    self.furthest = Some((reached, id, reason));
                }
                return false;
            }
            reached += 1;
            if let Some(name) = pattern.name
                && self.named(name).is_none()
            {
                self.bound.push((name, id));
            }
            let operands = self.module.operands(id);
            match (&pattern.operands, operands) {
                (Operands::Any, _) => {}
                (Operands::InOrder(patterns), _) => {
                    self.goals.extend(patterns.iter().zip(operands.iter().copied()).rev());
                }
                (Operands::EitherOrder(pair), &[a, b]) => return self.is_either(pair, [a, b]),
                (Operands::EitherOrder(_), _) => return false,
            }
        }
        true
    }

    /// Whether the goals can be reached if the two patterns match these operands in either order.
    fn is_either(&mut self, pair: &'p [Pattern; 2], [a, b]: [InstId; 2]) -> bool {
        let (goals, bound) = (self.goals.clone(), self.bound.clone());
        let [first, second] = pair;
        for (one, other) in [(a, b), (b, a)] {
            self.goals.push((second, other));
            self.goals.push((first, one));
            if self.is_solved() {
                return true;
            }
            self.goals.clone_from(&goals);
            self.bound.clone_from(&bound);
        }
        false
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
        if !opcodes.is_empty() && !pattern.may_have_extras && module.extras(id).is_some() {
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
    fn text(self, module: &Module, at: InstId) -> String {
        match self {
            Self::Opcode(opcodes) => {
                let names: Vec<&str> = opcodes.iter().map(|opcode| opcode.name()).collect();
                format!("it is `{}`, not `{}`", module.opcode(at).name(), names.join("` or `"))
            }
            Self::OperandCount(count) => {
                format!("it has {} operands, not {count}", module.operands(at).len())
            }
            Self::Extras => "it carries a sharding, control dependencies or other attributes that \
                             a rewrite would lose"
                .into(),
            Self::Condition(condition) => format!("it must {}", condition.says),
            Self::Name(name, other) => {
                format!("it is not the value that `{name}` stands for, `{}`", module.name_of(other))
            }
            Self::Steps => format!("there are more than {MOST_STEPS} ways to match it"),
        }
    }
}
