//! Prints kernels as text.

use std::fmt::{self, Display, Formatter};

use tilewright_ir::ops::attr::AttrValue;
use tilewright_ir::{Literal, Op};

use super::{
    Block, Bound, BufferAddress, BufferId, Digit, Expr, Function, FunctionStep, IndexId, Kernel,
    RegisterId, Space, Statement, Value, scalar,
};

/// For each statement, the line of the text (from 1) on which it begins, in the order of the
/// text: the statements of a body follow the statement that contains them.
pub fn lines(kernel: &Kernel) -> Vec<usize> {
    // The header: `kernel`, the buffers, functions with three extra lines each, and `{`.
    let functions = kernel.functions.iter().map(|function| function.steps.len() + 3);
    let mut next = 1 + kernel.buffers.len() + functions.sum::<usize>() + 2;
    let mut lines = Vec::new();
    count(&kernel.body, &mut next, &mut lines);
    lines
}

fn count(statements: &[Statement], next: &mut usize, lines: &mut Vec<usize>) {
    for statement in statements {
        lines.push(*next);
        *next += 1;
        if let Some(body) = statement.body() {
            count(body, next, lines);
            *next += 1;
        }
    }
}

impl Statement {
    /// Returns the statements of the body, if the statement has one.
    pub fn body(&self) -> Option<&[Statement]> {
        match self {
            Self::For { body, .. } | Self::When { body, .. } | Self::Stream { body, .. } => {
                Some(body)
            }
            Self::Copy { .. } | Self::Wait(_) | Self::Set { .. } | Self::Store { .. } => None,
        }
    }
}

impl Space {
    /// Returns the keywords before and after the declaration of a buffer.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::In => ("in", ""),
            Self::Out => ("out", ""),
            Self::Workspace => ("workspace", ""),
            Self::Vmem => ("vmem", ""),
            Self::VmemTwice => ("vmem", " twice"),
        }
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernel {} for {}", self.name, self.target)?;
        for buffer in &self.buffers {
            let (space, twice) = buffer.space.words();
            let (name, element, len) = (&buffer.name, buffer.element_type.name(), buffer.len);
            writeln!(f, "{space} {name}: {element}[{len}]{twice}")?;
        }
        for function in &self.functions {
            write_function(f, function)?;
        }
        f.write_str("{\n")?;
        let mut printer = Printer { kernel: self, known: vec![false; self.registers.len()] };
        printer.statements(f, &self.body, 1)?;
        f.write_str("}\n")
    }
}

fn write_function(f: &mut Formatter<'_>, function: &Function) -> fmt::Result {
    let name = |value: usize| function.values.get(value).map_or("?", |value| &value.name);
    let typed = |value: usize| {
        let element = function.values.get(value).map_or("?", |value| value.element_type.name());
        format!("{}: {element}", name(value))
    };
    let parameters: Vec<String> = (0..function.parameters).map(typed).collect();
    writeln!(f, "fn {}({}) {{", function.name, parameters.join(", "))?;
    for (step, value) in function.steps.iter().zip(function.parameters..) {
        write!(f, "  {} = ", typed(value))?;
        match step {
            FunctionStep::Constant(literal) => writeln!(f, "splat {}", Scalar(literal))?,
            FunctionStep::Apply(op, operands) => {
                write_op(f, op, operands.iter().map(|&operand| name(operand)))?;
                f.write_str("\n")?;
            }
        }
    }
    let results: Vec<&str> = function.results.iter().map(|&result| name(result)).collect();
    writeln!(f, "  return {}\n}}", results.join(", "))
}

/// Writes an op with its operands and those attributes that are words or numbers.
fn write_op<'a>(
    f: &mut Formatter<'_>,
    op: &Op,
    operands: impl Iterator<Item = &'a str>,
) -> fmt::Result {
    f.write_str(op.opcode().name())?;
    for (i, operand) in operands.enumerate() {
        write!(f, "{} {operand}", if i == 0 { "" } else { "," })?;
    }
    let mut done = Ok(());
    op.for_each_attr(&mut |name, value| {
        let written = match value {
            AttrValue::Word(word) => write!(f, ", {name}={word}"),
            AttrValue::Int(number) => write!(f, ", {name}={number}"),
            _ => Ok(()),
        };
        done = done.and(written);
    });
    done
}

/// A scalar that is displayed as kernels write it.
struct Scalar<'a>(&'a Literal);

impl Display for Scalar<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(scalar::print(self.0).as_deref().unwrap_or("?"))
    }
}

impl Display for Digit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.stride {
            1 => write!(f, "p%{}", self.extent),
            stride => write!(f, "p/{stride}%{}", self.extent),
        }
    }
}

struct Printer<'a> {
    kernel: &'a Kernel,
    /// For each register, whether its type was written.
    known: Vec<bool>,
}

impl<'a> Printer<'a> {
    fn buffer(&self, id: BufferId) -> &'a str {
        self.kernel.buffer(id).map_or("?", |buffer| &buffer.name)
    }

    fn register(&self, id: RegisterId) -> &'a str {
        self.kernel.register(id).map_or("?", |register| &register.name)
    }

    fn index(&self, id: IndexId) -> &'a str {
        self.kernel.indices.get(id.0).map_or("?", |name| name)
    }

    fn registers(&self, ids: &[RegisterId]) -> String {
        let names: Vec<&str> = ids.iter().map(|&id| self.register(id)).collect();
        names.join(", ")
    }

    fn expr(&self, expr: &'a Expr) -> ShownExpr<'a> {
        ShownExpr { kernel: self.kernel, expr, nested: false }
    }

    fn place(&self, place: &'a BufferAddress) -> String {
        format!("{}[{}]", self.buffer(place.buffer), self.expr(&place.at))
    }

    fn mask(&self, mask: &'a [Bound]) -> String {
        if mask.is_empty() {
            return String::new();
        }
        let bounds = mask.iter().map(|Bound { digit, from, to }| match self.single(from, to) {
            true => format!("{digit} == {}", self.expr(from)),
            false => format!("{digit} in {}..{}", self.expr(from), self.expr(to)),
        });
        let bounds: Vec<String> = bounds.collect();
        format!(" where {}", bounds.join(", "))
    }

    /// Checks whether a range holds one value and has the form that the parser produces for it.
    fn single(&self, from: &Expr, to: &Expr) -> bool {
        *to == super::after(from)
    }

    fn statements(
        &mut self,
        f: &mut Formatter<'_>,
        statements: &'a [Statement],
        depth: usize,
    ) -> fmt::Result {
        for statement in statements {
            write!(f, "{:1$}", "", 2 * depth)?;
            self.statement(f, statement)?;
            match statement.body() {
                Some(body) => {
                    f.write_str(" {\n")?;
                    self.statements(f, body, depth + 1)?;
                    writeln!(f, "{:1$}}}", "", 2 * depth)?;
                }
                None => f.write_str("\n")?,
            }
        }
        Ok(())
    }

    fn statement(&mut self, f: &mut Formatter<'_>, statement: &'a Statement) -> fmt::Result {
        match statement {
            Statement::For { index, count, .. } => {
                write!(f, "for {} in {}", self.index(*index), self.expr(count))
            }
            Statement::When { equal: [a, b], .. } => {
                write!(f, "when {} == {}", self.expr(a), self.expr(b))
            }
            Statement::Stream { grid, blocks, .. } => {
                let blocks: Vec<String> = blocks
                    .iter()
                    .map(|block| {
                        let Block { to, from, len, each } = block;
                        let runs = each.iter().map(|(index, count)| {
                            format!(" each {} in {}", self.index(*index), self.expr(count))
                        });
                        let to = match to.at {
                            Expr::Constant(0) => self.buffer(to.buffer).to_owned(),
                            _ => self.place(to),
                        };
                        let (from, runs) = (self.place(from), runs.collect::<String>());
                        format!("{to} <- {from} of {}{runs}", self.expr(len))
                    })
                    .collect();
                let grid: Vec<String> =
                    grid.iter().map(|&(i, n)| format!("{} in {n}", self.index(i))).collect();
                write!(f, "stream {} for {}", blocks.join(", "), grid.join(", "))
            }
            Statement::Copy { to, from, len } => {
                let (to, from) = (self.place(to), self.place(from));
                write!(f, "copy {to} <- {from} of {}", self.expr(len))
            }
            Statement::Wait(buffer) => write!(f, "wait {}", self.buffer(*buffer)),
            Statement::Set { registers, value } => {
                let typed: Vec<String> = registers.iter().map(|&id| self.set(id)).collect();
                write!(f, "{} = ", typed.join(", "))?;
                self.value(f, value)
            }
            Statement::Store { to, from, mask } => {
                let (to, from) = (self.place(to), self.register(*from));
                write!(f, "store {to} = {from}{}", self.mask(mask))
            }
        }
    }

    /// Returns a register on the left side, with its type if it is set for the first time.
    fn set(&mut self, id: RegisterId) -> String {
        let known = self.known.get_mut(id.0).is_none_or(|known| std::mem::replace(known, true));
        match self.kernel.register(id) {
            Some(register) if !known => {
                let element = register.element_type.name();
                format!("{}: {element} x {}", register.name, register.len)
            }
            _ => self.register(id).to_owned(),
        }
    }

    fn value(&self, f: &mut Formatter<'_>, value: &'a Value) -> fmt::Result {
        match value {
            Value::Load { from, mask, otherwise } | Value::Gather { from, mask, otherwise } => {
                let word = if matches!(value, Value::Load { .. }) { "load" } else { "gather" };
                write!(f, "{word} {}{}", self.place(from), self.mask(mask))?;
                match otherwise {
                    Some(literal) => write!(f, " else {}", Scalar(literal)),
                    None => Ok(()),
                }
            }
            Value::Scalar(place) => write!(f, "scalar {}", self.place(place)),
            Value::Splat(literal) => write!(f, "splat {}", Scalar(literal)),
            Value::Positions(value) => write!(f, "positions {}", self.expr(value)),
            Value::Under(mask) => {
                let mask = self.mask(mask);
                write!(f, "under{}", mask.strip_prefix(" where").unwrap_or(&mask))
            }
            Value::Apply(op, operands) => {
                write_op(f, op, operands.iter().map(|&operand| self.register(operand)))
            }
            Value::Call(function, operands) => {
                let name = self.kernel.function(*function).map_or("?", |function| &function.name);
                write!(f, "call {name} of {}", self.registers(operands))
            }
            Value::Fold { by, along, of } => {
                let name = self.kernel.function(*by).map_or("?", |function| &function.name);
                write!(f, "fold {along} by {name} of {}", self.registers(of))
            }
            Value::Spread { of, along, at } => {
                write!(f, "spread {along} at {} of {}", self.expr(at), self.register(*of))
            }
            Value::Part { of, at } => {
                write!(f, "part {} of {}", self.expr(at), self.register(*of))
            }
        }
    }
}

/// An expression that is displayed with the names of a kernel.
struct ShownExpr<'a> {
    kernel: &'a Kernel,
    expr: &'a Expr,
    /// Whether it is a part of another expression, so that anything but an atom needs brackets.
    nested: bool,
}

impl ShownExpr<'_> {
    fn part<'a>(&'a self, expr: &'a Expr) -> ShownExpr<'a> {
        ShownExpr { kernel: self.kernel, expr, nested: true }
    }

    fn whole<'a>(&'a self, expr: &'a Expr) -> ShownExpr<'a> {
        ShownExpr { kernel: self.kernel, expr, nested: false }
    }

    fn bare(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.expr {
            Expr::Constant(value) => write!(f, "{value}"),
            Expr::Position => f.write_str("p"),
            Expr::Index(id) => f.write_str(self.kernel.indices.get(id.0).map_or("?", |name| name)),
            Expr::Sum(both) => {
                write!(f, "{}", self.whole(&both[0]))?;
                match &both[1] {
                    Expr::Constant(value) if *value < 0 => write!(f, " - {}", value.unsigned_abs()),
                    Expr::Times(of, by) if *by < 0 => {
                        write!(f, " - {}*{}", by.unsigned_abs(), self.part(of))
                    }
                    sum @ Expr::Sum(_) => write!(f, " + {}", self.part(sum)),
                    other => write!(f, " + {}", self.whole(other)),
                }
            }
            Expr::Times(of, by) => write!(f, "{by}*{}", self.part(of)),
            Expr::Over(of, by) => write!(f, "{}/{by}", self.divided(of)),
            Expr::Modulo(of, by) => write!(f, "{}%{by}", self.divided(of)),
            Expr::Least(both) => {
                write!(f, "min({}, {})", self.whole(&both[0]), self.whole(&both[1]))
            }
        }
    }

    /// Shows a dividend. A quotient needs no brackets, because division is left-associative.
    fn divided<'a>(&'a self, expr: &'a Expr) -> ShownExpr<'a> {
        match expr {
            Expr::Over(..) | Expr::Modulo(..) => self.whole(expr),
            _ => self.part(expr),
        }
    }
}

impl Display for ShownExpr<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_atom = match self.expr {
            Expr::Constant(_) | Expr::Index(_) | Expr::Position | Expr::Least(_) => true,
            Expr::Sum(_) | Expr::Times(..) | Expr::Over(..) | Expr::Modulo(..) => false,
        };
        if is_atom || !self.nested {
            return self.bare(f);
        }
        f.write_str("(")?;
        self.bare(f)?;
        f.write_str(")")
    }
}
