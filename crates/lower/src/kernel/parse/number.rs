//! Parses places, masks and numbers.

use tilewright_ir::{ElementType, Literal};

use super::{MOST_NESTED, Parsed, Parser};
use crate::kernel::{Bound, BufferAddress, Digit, Expr, Mask, after, scalar};

impl Parser<'_> {
    pub(super) fn place(&mut self) -> Parsed<BufferAddress> {
        let buffer = self.buffer_name()?;
        self.symbol("[")?;
        let at = self.expr()?;
        self.symbol("]")?;
        Ok(BufferAddress { buffer, at })
    }

    pub(super) fn mask(&mut self) -> Parsed<Mask> {
        if self.eat_word("where") { self.bounds() } else { Ok(Mask::new()) }
    }

    pub(super) fn bounds(&mut self) -> Parsed<Mask> {
        let mut mask = Mask::new();
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

    pub(super) fn digit(&mut self) -> Parsed<Digit> {
        self.word("p")?;
        let stride = if self.eat("/") { self.number()? } else { 1 };
        self.symbol("%")?;
        Ok(Digit { stride, extent: self.number()? })
    }

    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let mut sum = self.term(false)?;
        loop {
            let minus = match (self.eat("+"), self.eat("-")) {
                (false, false) => return Ok(sum),
                (_, minus) => minus,
            };
            sum = Expr::Sum(Box::new([sum, self.term(minus)?]));
        }
    }

    /// Parses a multiple, or an atom with its divisors. After a minus sign, only a number or a
    /// multiple is valid.
    pub(super) fn term(&mut self, minus: bool) -> Parsed<Expr> {
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

    pub(super) fn divisor(&mut self) -> Parsed<i64> {
        let at = self.at;
        let divisor = self.integer()?;
        if divisor > 0 { Ok(divisor) } else { Err(self.error(at, "a positive number".to_owned())) }
    }

    pub(super) fn atom(&mut self, minus: bool) -> Parsed<Expr> {
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
        if self.eat_word("p") {
            return Ok(Expr::Position);
        }
        Ok(Expr::Index(self.index()?))
    }

    pub(super) fn integer(&mut self) -> Parsed<i64> {
        self.signed(false)
    }

    pub(super) fn signed(&mut self, minus: bool) -> Parsed<i64> {
        self.skip();
        let at = self.at;
        let negative = minus != self.eat("-");
        let digits = self.take_while(|c| c.is_ascii_digit());
        let signed = format!("{}{digits}", if negative { "-" } else { "" });
        signed.parse().map_err(|_| self.error(at, "a number of 64 bits".to_owned()))
    }

    pub(super) fn number(&mut self) -> Parsed<u64> {
        self.skip();
        let at = self.at;
        let number = self.take_while(|c| c.is_ascii_digit()).parse();
        number.map_err(|_| self.error(at, "a number of 64 bits".to_owned()))
    }

    pub(super) fn scalar(&mut self, element_type: ElementType) -> Parsed<Literal> {
        self.skip();
        let at = self.at;
        let mut words = Vec::new();
        for _ in 0..scalar::words(element_type) {
            words.push(self.chunk()?);
        }
        let scalar = scalar::parse(element_type, &words);
        scalar.ok_or_else(|| self.error(at, format!("a value of {}", element_type.name())))
    }

    pub(super) fn element_type(&mut self) -> Parsed<ElementType> {
        let at = self.at;
        let name = self.name()?;
        ElementType::from_name(name).ok_or_else(|| self.error(at, "an element type".to_owned()))
    }
}
