//! Kernels from text.

use smallvec::SmallVec;
use smol_str::SmolStr;
use thiserror::Error;
use tilewright_ir::ops::attr::{AttrKind, AttrValue, AttrValues};
use tilewright_ir::{ElementType, Literal, Op, Opcode};

use super::{
    Block, Bound, Buffer, BufferId, Digit, Expr, Function, FunctionId, FunctionStep, FunctionValue,
    IndexId, Kernel, Mask, Place, Register, RegisterId, Space, Statement, Value, after, scalar,
};

/// Where a text is no kernel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// What was expected.
    pub message: String,
}

/// Reads a kernel as it is printed.
///
/// # Errors
/// At the first thing that does not belong there.
pub fn parse(text: &str) -> Result<Kernel, ParseError> {
    let mut parser = Parser { text, at: 0, kernel: Kernel::default(), depth: 0 };
    parser.kernel()?;
    Ok(parser.kernel)
}

type Parsed<T> = Result<T, ParseError>;

/// How deep statements and expressions may be within each other.
const MOST_NESTED: usize = 64;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    kernel: Kernel,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn kernel(&mut self) -> Parsed<()> {
        self.word("kernel")?;
        self.kernel.name = self.chunk()?.into();
        self.word("for")?;
        self.kernel.target = self.chunk()?.into();
        loop {
            let space = match self.peek_name() {
                "in" => Space::In,
                "out" => Space::Out,
                "workspace" => Space::Workspace,
                "vmem" => Space::Vmem,
                "fn" => {
                    let function = self.function()?;
                    self.kernel.functions.push(function);
                    continue;
                }
                _ => break,
            };
            self.buffer(space)?;
        }
        self.kernel.body = self.statements()?;
        self.skip();
        if self.at < self.text.len() { Err(self.expected("the end")) } else { Ok(()) }
    }

    fn buffer(&mut self, space: Space) -> Parsed<()> {
        self.name()?;
        let name = self.new_name()?;
        self.symbol(":")?;
        let element_type = self.element_type()?;
        self.symbol("[")?;
        let len = self.number()?;
        self.symbol("]")?;
        let twice = space == Space::Vmem && self.eat_word("twice");
        let space = if twice { Space::VmemTwice } else { space };
        self.kernel.buffers.push(Buffer { name, space, element_type, len });
        Ok(())
    }

    // --- functions ----------------------------------------------------------

    fn function(&mut self) -> Parsed<Function> {
        self.word("fn")?;
        let name = self.new_name()?;
        let mut values: Vec<FunctionValue> = Vec::new();
        self.symbol("(")?;
        while !self.eat(")") {
            if !values.is_empty() {
                self.symbol(",")?;
            }
            let value = self.function_value(&values)?;
            values.push(value);
        }
        let parameters = values.len();
        let mut steps = Vec::new();
        self.symbol("{")?;
        while !self.eat_word("return") {
            let value = self.function_value(&values)?;
            self.symbol("=")?;
            steps.push(if self.eat_word("splat") {
                FunctionStep::Constant(self.scalar(value.element_type)?)
            } else {
                let opcode = self.opcode()?;
                let (operands, attrs) = self.operands(opcode, |parser| parser.value(&values))?;
                FunctionStep::Apply(self.op(opcode, attrs)?, operands)
            });
            values.push(value);
        }
        let mut results = vec![self.value(&values)?];
        while self.eat(",") {
            results.push(self.value(&values)?);
        }
        self.symbol("}")?;
        Ok(Function { name, values, parameters, steps, results })
    }

    fn function_value(&mut self, values: &[FunctionValue]) -> Parsed<FunctionValue> {
        let at = self.at;
        let name: SmolStr = self.name()?.into();
        if values.iter().any(|value| value.name == name) {
            return Err(self.error(at, format!("a new name, not `{name}` again")));
        }
        self.symbol(":")?;
        Ok(FunctionValue { name, element_type: self.element_type()? })
    }

    fn value(&mut self, values: &[FunctionValue]) -> Parsed<usize> {
        let at = self.at;
        let name = self.name()?;
        let place = values.iter().position(|value| value.name == name);
        place.ok_or_else(|| self.error(at, format!("a value: there is no `{name}`")))
    }

    // --- statements ---------------------------------------------------------

    fn statements(&mut self) -> Parsed<Vec<Statement>> {
        self.symbol("{")?;
        self.depth += 1;
        if self.depth > MOST_NESTED {
            return Err(self.expected("statements less deep within each other"));
        }
        let mut statements = Vec::new();
        while !self.eat("}") {
            statements.push(self.statement()?);
        }
        self.depth -= 1;
        Ok(statements)
    }

    fn statement(&mut self) -> Parsed<Statement> {
        match self.peek_name() {
            "for" => {
                self.name()?;
                let index = self.index()?;
                self.word("in")?;
                let count = self.expr()?;
                Ok(Statement::For { index, count, body: self.statements()? })
            }
            "when" => {
                self.name()?;
                let a = self.expr()?;
                self.symbol("==")?;
                let equal = [a, self.expr()?];
                Ok(Statement::When { equal, body: self.statements()? })
            }
            "stream" => self.stream(),
            "copy" => {
                self.name()?;
                let to = self.place()?;
                self.symbol("<-")?;
                let from = self.place()?;
                self.word("of")?;
                Ok(Statement::Copy { to, from, len: self.expr()? })
            }
            "wait" => {
                self.name()?;
                Ok(Statement::Wait(self.buffer_name()?))
            }
            "store" => {
                self.name()?;
                let to = self.place()?;
                self.symbol("=")?;
                let from = self.register()?;
                Ok(Statement::Store { to, from, mask: self.mask()? })
            }
            _ => self.set(),
        }
    }

    fn stream(&mut self) -> Parsed<Statement> {
        self.name()?;
        // The grid is written last, but the blocks name its indices.
        let start = self.at;
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let Some(grid_at) = line.rfind(" for ") else {
            return Err(self.expected("` for ` and a grid"));
        };
        self.at = start + grid_at;
        self.word("for")?;
        let mut grid = Vec::new();
        loop {
            let index = self.index()?;
            self.word("in")?;
            grid.push((index, self.number()?));
            if !self.eat(",") {
                break;
            }
        }
        let end = self.at;
        self.at = start;
        let mut blocks = Vec::new();
        loop {
            let to = self.buffer_name()?;
            self.symbol("<-")?;
            let from = self.place()?;
            self.word("of")?;
            blocks.push(Block { to, from, len: self.expr()? });
            if !self.eat(",") {
                break;
            }
        }
        self.skip();
        if self.at != start + grid_at + 1 {
            return Err(self.expected("`for` and a grid"));
        }
        self.at = end;
        Ok(Statement::Stream { grid, blocks, body: self.statements()? })
    }

    fn set(&mut self) -> Parsed<Statement> {
        let mut registers: SmallVec<[RegisterId; 1]> = SmallVec::new();
        loop {
            registers.push(self.register_set()?);
            if !self.eat(",") {
                break;
            }
        }
        self.symbol("=")?;
        let element_type = registers.first().and_then(|&id| self.kernel.register(id));
        let element_type = element_type.map_or(ElementType::F32, |register| register.element_type);
        Ok(Statement::Set { registers, value: self.set_value(element_type)? })
    }

    /// A register that is set: a new one, if its type follows.
    fn register_set(&mut self) -> Parsed<RegisterId> {
        let at = self.at;
        let name = self.name()?;
        if !self.eat(":") {
            self.at = at;
            return self.register();
        }
        self.fresh(at, name)?;
        let element_type = self.element_type()?;
        self.word("x")?;
        let len = self.number()?;
        self.kernel.registers.push(Register { name: name.into(), element_type, len });
        Ok(RegisterId(self.kernel.registers.len() - 1))
    }

    fn set_value(&mut self, element_type: ElementType) -> Parsed<Value> {
        match self.peek_name() {
            "load" => {
                self.name()?;
                let (from, mask) = (self.place()?, self.mask()?);
                let otherwise =
                    if self.eat_word("else") { Some(self.scalar(element_type)?) } else { None };
                Ok(Value::Load { from, mask, otherwise })
            }
            "scalar" => {
                self.name()?;
                Ok(Value::Scalar(self.place()?))
            }
            "splat" => {
                self.name()?;
                Ok(Value::Splat(self.scalar(element_type)?))
            }
            "positions" => {
                self.name()?;
                let mut terms = SmallVec::new();
                while !self.eat_word("from") {
                    let factor = self.integer()?;
                    terms.push((factor, self.digit()?));
                    self.symbol(",")?;
                }
                Ok(Value::Positions { terms, base: self.expr()? })
            }
            "call" => {
                self.name()?;
                let function = self.function_name()?;
                self.word("of")?;
                Ok(Value::Call(function, self.registers()?.into_iter().collect()))
            }
            "fold" => {
                self.name()?;
                let along = self.digit()?;
                self.word("by")?;
                let by = self.function_name()?;
                self.word("of")?;
                Ok(Value::Fold { by, along, of: self.registers()?.into_iter().collect() })
            }
            "spread" => {
                self.name()?;
                let along = self.digit()?;
                self.word("at")?;
                let at = self.expr()?;
                self.word("of")?;
                Ok(Value::Spread { of: self.register()?, along, at })
            }
            _ => {
                let opcode = self.opcode()?;
                let (operands, attrs) = self.operands(opcode, Self::register)?;
                Ok(Value::Apply(self.op(opcode, attrs)?, operands))
            }
        }
    }

    fn registers(&mut self) -> Parsed<Vec<RegisterId>> {
        let mut registers = vec![self.register()?];
        while self.eat(",") {
            registers.push(self.register()?);
        }
        Ok(registers)
    }

    // --- ops ----------------------------------------------------------------

    fn opcode(&mut self) -> Parsed<Opcode> {
        self.skip();
        let at = self.at;
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '-');
        let opcode = Opcode::from_name(name).filter(|opcode| opcode.is_elementwise());
        opcode.ok_or_else(|| self.error(at, "a statement or an elementwise op".to_owned()))
    }

    /// Operands, then attributes.
    fn operands<T>(
        &mut self,
        opcode: Opcode,
        mut operand: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<(SmallVec<[T; 3]>, AttrValues)> {
        let mut operands = SmallVec::new();
        let mut attrs = AttrValues::default();
        loop {
            self.skip();
            let named = self.text[self.at..].find(|c: char| !is_name(c));
            let spec = opcode.attrs().iter().find(|spec| {
                named == Some(spec.name.len()) && self.text[self.at..].starts_with(spec.name)
            });
            match spec.filter(|spec| self.text[self.at + spec.name.len()..].starts_with('=')) {
                Some(spec) => {
                    self.name()?;
                    self.symbol("=")?;
                    attrs.insert(
                        spec.name,
                        match spec.kind {
                            AttrKind::Int => AttrValue::Int(self.integer()?),
                            _ => AttrValue::Word(self.name()?.into()),
                        },
                    );
                }
                None => operands.push(operand(self)?),
            }
            if !self.eat(",") {
                return Ok((operands, attrs));
            }
        }
    }

    fn op(&self, opcode: Opcode, mut attrs: AttrValues) -> Parsed<Op> {
        Op::from_attrs(opcode, &mut attrs).map_err(|error| self.error(self.at, error.to_string()))
    }

    // --- places, masks, numbers ---------------------------------------------

    fn place(&mut self) -> Parsed<Place> {
        let buffer = self.buffer_name()?;
        self.symbol("[")?;
        let at = self.expr()?;
        self.symbol("]")?;
        Ok(Place { buffer, at })
    }

    fn mask(&mut self) -> Parsed<Mask> {
        let mut mask = Mask::new();
        if !self.eat_word("where") {
            return Ok(mask);
        }
        loop {
            let digit = self.digit()?;
            let (from, to) = if self.eat("==") {
                let from = self.expr()?;
                let to = after(&from);
                (from, to)
            } else {
                self.word("in")?;
                let from = self.expr()?;
                self.symbol("..")?;
                (from, self.expr()?)
            };
            mask.push(Bound { digit, from, to });
            if !self.eat(",") {
                return Ok(mask);
            }
        }
    }

    fn digit(&mut self) -> Parsed<Digit> {
        self.word("p")?;
        let stride = if self.eat("/") { self.number()? } else { 1 };
        self.symbol("%")?;
        Ok(Digit { stride, extent: self.number()? })
    }

    fn expr(&mut self) -> Parsed<Expr> {
        let mut sum = self.term(false)?;
        loop {
            let minus = match (self.eat("+"), self.eat("-")) {
                (false, false) => return Ok(sum),
                (_, minus) => minus,
            };
            sum = Expr::Sum(Box::new([sum, self.term(minus)?]));
        }
    }

    /// A multiple, or an atom with what divides it; its negative, which then is a
    /// number or a multiple.
    fn term(&mut self, minus: bool) -> Parsed<Expr> {
        self.skip();
        let at = self.at;
        let first = self.atom(minus)?;
        if let Expr::Constant(by) = first
            && self.eat("*")
        {
            return Ok(Expr::Times(Box::new(self.atom(false)?), by));
        }
        if minus && !matches!(first, Expr::Constant(_)) {
            return Err(self.error(at, "a number after `-`".to_owned()));
        }
        let mut divided = first;
        loop {
            divided = if self.eat("/") {
                Expr::Over(Box::new(divided), self.divisor()?)
            } else if self.eat("%") {
                Expr::Modulo(Box::new(divided), self.divisor()?)
            } else {
                return Ok(divided);
            };
        }
    }

    fn divisor(&mut self) -> Parsed<i64> {
        let at = self.at;
        let divisor = self.integer()?;
        if divisor > 0 { Ok(divisor) } else { Err(self.error(at, "a positive number".to_owned())) }
    }

    fn atom(&mut self, minus: bool) -> Parsed<Expr> {
        self.skip();
        if self.eat("(") {
            self.depth += 1;
            if self.depth > MOST_NESTED {
                return Err(self.expected("brackets less deep within each other"));
            }
            let inner = self.expr()?;
            self.depth -= 1;
            self.symbol(")")?;
            return Ok(inner);
        }
        if self.text[self.at..].starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Ok(Expr::Constant(self.signed(minus)?));
        }
        if self.peek_name() == "min" {
            self.name()?;
            self.symbol("(")?;
            let a = self.expr()?;
            self.symbol(",")?;
            let both = [a, self.expr()?];
            self.symbol(")")?;
            return Ok(Expr::Least(Box::new(both)));
        }
        Ok(Expr::Index(self.index()?))
    }

    fn integer(&mut self) -> Parsed<i64> {
        self.signed(false)
    }

    fn signed(&mut self, minus: bool) -> Parsed<i64> {
        self.skip();
        let at = self.at;
        let negative = minus != self.eat("-");
        let digits = self.take_while(|c| c.is_ascii_digit());
        let signed = format!("{}{digits}", if negative { "-" } else { "" });
        signed.parse().map_err(|_| self.error(at, "a number of 64 bits".to_owned()))
    }

    fn number(&mut self) -> Parsed<u64> {
        self.skip();
        let at = self.at;
        let number = self.take_while(|c| c.is_ascii_digit()).parse();
        number.map_err(|_| self.error(at, "a number of 64 bits".to_owned()))
    }

    fn scalar(&mut self, element_type: ElementType) -> Parsed<Literal> {
        self.skip();
        let at = self.at;
        let mut words = Vec::new();
        for _ in 0..scalar::words(element_type) {
            words.push(self.chunk()?);
        }
        let scalar = scalar::parse(element_type, &words);
        scalar.ok_or_else(|| self.error(at, format!("a value of {}", element_type.name())))
    }

    fn element_type(&mut self) -> Parsed<ElementType> {
        let at = self.at;
        let name = self.name()?;
        ElementType::from_name(name).ok_or_else(|| self.error(at, "an element type".to_owned()))
    }

    // --- names --------------------------------------------------------------

    fn buffer_name(&mut self) -> Parsed<BufferId> {
        self.known("buffer", |kernel, name| {
            kernel.buffers.iter().position(|buffer| buffer.name == name).map(BufferId)
        })
    }

    fn function_name(&mut self) -> Parsed<FunctionId> {
        self.known("function", |kernel, name| {
            kernel.functions.iter().position(|function| function.name == name).map(FunctionId)
        })
    }

    fn register(&mut self) -> Parsed<RegisterId> {
        self.known("register", |kernel, name| {
            kernel.registers.iter().position(|register| register.name == name).map(RegisterId)
        })
    }

    /// An index, which is new where it is first named.
    fn index(&mut self) -> Parsed<IndexId> {
        let at = self.at;
        let name = self.name()?;
        if let Some(known) = self.kernel.indices.iter().position(|index| index == name) {
            return Ok(IndexId(known));
        }
        self.fresh(at, name)?;
        self.kernel.indices.push(name.into());
        Ok(IndexId(self.kernel.indices.len() - 1))
    }

    fn known<T>(&mut self, what: &str, find: impl Fn(&Kernel, &str) -> Option<T>) -> Parsed<T> {
        self.skip();
        let at = self.at;
        let name = self.name()?;
        find(&self.kernel, name)
            .ok_or_else(|| self.error(at, format!("a {what}: there is no `{name}`")))
    }

    fn new_name(&mut self) -> Parsed<SmolStr> {
        self.skip();
        let at = self.at;
        let name = self.name()?;
        self.fresh(at, name)?;
        Ok(name.into())
    }

    fn fresh(&self, at: usize, name: &str) -> Parsed<()> {
        let kernel = &self.kernel;
        let taken = kernel.buffers.iter().any(|buffer| buffer.name == name)
            || kernel.functions.iter().any(|function| function.name == name)
            || kernel.registers.iter().any(|register| register.name == name)
            || kernel.indices.iter().any(|index| index == name);
        if taken { Err(self.error(at, format!("a new name, not `{name}` again"))) } else { Ok(()) }
    }

    // --- characters ---------------------------------------------------------

    fn skip(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !holds(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// What stands between blanks.
    fn chunk(&mut self) -> Parsed<&'a str> {
        self.skip();
        let chunk = self.take_while(|c| !c.is_whitespace());
        if chunk.is_empty() { Err(self.expected("a word")) } else { Ok(chunk) }
    }

    fn peek_name(&self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]
    }

    fn name(&mut self) -> Parsed<&'a str> {
        self.skip();
        let at = self.at;
        let name = self.take_while(is_name);
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if starts { Ok(name) } else { Err(self.error(at, "a name".to_owned())) }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_name() == word;
        if found {
            self.skip();
            self.at += word.len();
        }
        found
    }

    fn word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    fn eat(&mut self, symbol: &str) -> bool {
        self.skip();
        let found = self.text[self.at..].starts_with(symbol);
        if found {
            self.at += symbol.len();
        }
        found
    }

    fn symbol(&mut self, symbol: &str) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    fn expected(&mut self, what: &str) -> ParseError {
        self.skip();
        self.error(self.at, what.to_owned())
    }

    fn error(&self, at: usize, what: String) -> ParseError {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        ParseError { line, column, message: format!("expected {what}") }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
