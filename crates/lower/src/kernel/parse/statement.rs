//! Parses statements and values.

use smallvec::SmallVec;
use tilewright_ir::ops::attr::{AttrKind, AttrValue, AttrValues};
use tilewright_ir::{ElementType, Op, Opcode};

use super::cursor::is_name;
use super::{MOST_NESTED, Parsed, Parser};
use crate::kernel::{Block, BufferAddress, Expr, Register, RegisterId, Statement, Value};

impl Parser<'_> {
    pub(super) fn statements(&mut self) -> Parsed<Vec<Statement>> {
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

    pub(super) fn statement(&mut self) -> Parsed<Statement> {
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

    pub(super) fn stream(&mut self) -> Parsed<Statement> {
        self.name()?;
        // The grid is written last, but the blocks use its indices.
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
            blocks.push(self.block()?);
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

    /// Parses a block of a stream.
    fn block(&mut self) -> Parsed<Block> {
        let buffer = self.buffer_name()?;
        let at = if self.eat("[") {
            let at = self.expr()?;
            self.symbol("]")?;
            at
        } else {
            Expr::ZERO
        };
        self.symbol("<-")?;
        let from = self.place()?;
        self.word("of")?;
        let len = self.expr()?;
        let mut each = Vec::new();
        while self.eat_word("each") {
            let index = self.index()?;
            self.word("in")?;
            each.push((index, self.expr()?));
        }
        Ok(Block { to: BufferAddress { buffer, at }, from, len, each })
    }

    pub(super) fn set(&mut self) -> Parsed<Statement> {
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

    /// Parses a register on the left side; a type declares a new register.
    pub(super) fn register_set(&mut self) -> Parsed<RegisterId> {
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

    pub(super) fn set_value(&mut self, element_type: ElementType) -> Parsed<Value> {
        match self.peek_name() {
            word @ ("load" | "gather") => self.elements(word == "load", element_type),
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
                Ok(Value::Positions(self.expr()?))
            }
            "under" => {
                self.name()?;
                Ok(Value::Under(self.bounds()?))
            }
            "part" => {
                self.name()?;
                let at = self.expr()?;
                self.word("of")?;
                Ok(Value::Part { of: self.register()?, at })
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

    /// Parses a load (consecutive elements) or a gather.
    fn elements(&mut self, side_by_side: bool, element_type: ElementType) -> Parsed<Value> {
        self.name()?;
        let (from, mask) = (self.place()?, self.mask()?);
        let otherwise = if self.eat_word("else") { Some(self.scalar(element_type)?) } else { None };
        Ok(match side_by_side {
            true => Value::Load { from, mask, otherwise },
            false => Value::Gather { from, mask, otherwise },
        })
    }

    pub(super) fn registers(&mut self) -> Parsed<Vec<RegisterId>> {
        let mut registers = vec![self.register()?];
        while self.eat(",") {
            registers.push(self.register()?);
        }
        Ok(registers)
    }

    pub(super) fn opcode(&mut self) -> Parsed<Opcode> {
        self.skip();
        let at = self.at;
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '-');
        let opcode = Opcode::from_name(name).filter(|opcode| opcode.is_elementwise());
        opcode.ok_or_else(|| self.error(at, "a statement or an elementwise op".to_owned()))
    }

    /// Parses operands, then attributes.
    pub(super) fn operands<T>(
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

    pub(super) fn op(&self, opcode: Opcode, mut attrs: AttrValues) -> Parsed<Op> {
        Op::from_attrs(opcode, &mut attrs).map_err(|error| self.error(self.at, error.to_string()))
    }
}
