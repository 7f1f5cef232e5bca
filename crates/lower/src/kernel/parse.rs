//! Parses the text of kernels.

mod cursor;
mod number;
mod statement;

use smol_str::SmolStr;
use thiserror::Error;

use super::{Buffer, Function, FunctionStep, FunctionValue, Kernel, Space};

/// A syntax error in the text of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The expected syntax.
    pub message: String,
}

/// Parses a kernel in the format that it is printed in.
///
/// # Errors
/// The first syntax error.
pub fn parse(text: &str) -> Result<Kernel, ParseError> {
    let mut parser = Parser { text, at: 0, kernel: Kernel::default(), depth: 0 };
    parser.kernel()?;
    Ok(parser.kernel)
}

type Parsed<T> = Result<T, ParseError>;

/// Maximum nesting depth of statements and expressions.
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
}
