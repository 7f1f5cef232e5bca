//! Values of the attributes that few ops have.

use smol_str::SmolStr;
use tilewright_ir::ops::attr::Real64;
use tilewright_ir::ops::contract::{Sparsity, SparsityConfig};
use tilewright_ir::ops::control::{DomainMetadata, OutputAlias};
use tilewright_ir::ops::elementwise::ResultAccuracy;
use tilewright_ir::{Dims, Literal};

use super::{Parse, Parser, SyntaxError};

impl Parser<'_> {
    /// `open [item ("," item)*] close`
    pub(super) fn list<T>(
        &mut self,
        open: u8,
        close: u8,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.expect(open, what)?;
        let mut items = Vec::new();
        while !self.accept(close) {
            if !items.is_empty() && !self.accept(b',') {
                return self.unexpected(&format!("`,` or `{}`", char::from(close)));
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `"{" [item ("," item)*] "}"`
    pub(super) fn braced<T>(
        &mut self,
        what: &str,
        item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.list(b'{', b'}', what, item)
    }

    /// `"[" [item ("," item)*] "]"`
    pub(super) fn bracketed<T>(
        &mut self,
        what: &str,
        item: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.list(b'[', b']', what, item)
    }

    /// `words := "{" [word ("," word)*] "}"`
    pub(super) fn words(&mut self) -> Parse<Vec<SmolStr>> {
        self.braced("`{` and words", |parser| {
            parser.cursor.skip_space();
            // XLA reads `HIGH` as it does `high`.
            parser.plain_word().map(|word| word.to_ascii_lowercase().into())
        })
    }

    /// `pairs := "{" ["{" integer "," integer "}" ("," ...)*] "}"`
    pub(super) fn pairs(&mut self) -> Parse<Vec<(i64, i64)>> {
        self.braced("`{` and pairs, as `{{0,1}}`", |parser| {
            parser.expect(b'{', "`{` and a pair")?;
            let first = parser.integer("the first of a pair")?;
            parser.expect(b',', "`,` and the second of the pair")?;
            let second = parser.integer("the second of the pair")?;
            parser.expect(b'}', "`}`")?;
            Ok((first, second))
        })
    }

    /// `index := "{" [integer ("," integer)*] "}"`: a path into a tuple.
    pub(super) fn shape_index(&mut self) -> Parse<Dims> {
        self.integers()
    }

    /// ```text
    /// aliasing := "{" [alias ("," alias)*] "}"
    /// alias    := index ":" "(" integer "," index ")"
    /// ```
    pub(super) fn aliasing(&mut self) -> Parse<Vec<OutputAlias>> {
        self.braced("`{`, as in `{{0}: (1, {})}`", |parser| {
            let output = parser.shape_index()?;
            parser.expect(b':', "`:` and an operand, as `(1, {})`")?;
            parser.expect(b'(', "`(` and the number of an operand")?;
            let operand = parser.integer("the number of an operand")?;
            parser.expect(b',', "`,` and which part of it")?;
            let operand_part = parser.shape_index()?;
            parser.expect(b')', "`)`")?;
            Ok(OutputAlias { output, operand, operand_part })
        })
    }

    /// ```text
    /// literal := shape value | "(" [literal ("," literal)*] ")"
    /// ```
    /// of a custom call; a tuple has the shape of each element before it.
    pub(super) fn shaped_literal(&mut self) -> Parse<Literal> {
        self.cursor.skip_space();
        if self.cursor.peek() == b'(' {
            let what = "`(` and the elements of the tuple";
            let element = |parser: &mut Self| parser.nested(Self::shaped_literal);
            return self.list(b'(', b')', what, element).map(Literal::Tuple);
        }
        let shape = self.shape()?;
        let shape = self.module.intern_shape(shape);
        self.literal_of(shape)
    }

    /// ```text
    /// accuracy := "{" "mode" "=" ("default" | "highest") "}"
    ///           | "{" "tolerance" "=" "{" (word "=" number ","?)* "}" "}"
    /// ```
    pub(super) fn accuracy(&mut self) -> Parse<ResultAccuracy> {
        self.expect(b'{', "`{`, as in `{mode=highest}`")?;
        let accuracy = if self.keyword("mode") {
            self.expect(b'=', "`=`")?;
            if self.keyword("default") || self.keyword("DEFAULT") {
                ResultAccuracy::Default
            } else if self.keyword("highest") || self.keyword("HIGHEST") {
                ResultAccuracy::Highest
            } else {
                return self.unexpected("`default` or `highest`");
            }
        } else if self.keyword("tolerance") {
            self.expect(b'=', "`=`")?;
            self.tolerance()?
        } else {
            return self.unexpected("`mode=` or `tolerance=`");
        };
        self.expect(b'}', "`}`")?;
        Ok(accuracy)
    }

    fn tolerance(&mut self) -> Parse<ResultAccuracy> {
        self.expect(b'{', "`{`, as in `{atol=0.1,rtol=0,ulps=2}`")?;
        let (mut atol, mut rtol, mut ulps) = (Real64(0.0), Real64(0.0), 0);
        while !self.accept(b'}') {
            let word = ["atol", "rtol", "ulps"].into_iter().find(|word| self.keyword(word));
            self.expect(b'=', "`atol=`, `rtol=` or `ulps=`")?;
            match word {
                Some("atol") => atol = self.real64()?,
                Some("rtol") => rtol = self.real64()?,
                _ => ulps = self.integer("a number of units in the last place")?,
            }
            self.accept(b',');
        }
        Ok(ResultAccuracy::Tolerance { atol, rtol, ulps })
    }

    pub(super) fn real64(&mut self) -> Parse<Real64> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        match self.cursor.number().parse() {
            Ok(value) => Ok(Real64(value)),
            Err(_) => {
                self.cursor.set_pos(start);
                self.unexpected("a number, as `0.001`")
            }
        }
    }

    /// ```text
    /// config   := "{" (("lhs" | "rhs") "=" sparsity ","?)* "}"
    /// sparsity := "{" "sparsity" "=" NxM "dimension" "=" integer ["stride" "=" integer] "}"
    /// ```
    pub(super) fn sparsity_config(&mut self) -> Parse<SparsityConfig> {
        self.expect(b'{', "`{`, as in `{lhs={sparsity=2x4 dimension=1 stride=1}}`")?;
        let mut config = SparsityConfig::default();
        while !self.accept(b'}') {
            let slot = if self.keyword("lhs") {
                &mut config.lhs
            } else if self.keyword("rhs") {
                &mut config.rhs
            } else {
                return self.unexpected("`lhs=`, `rhs=` or `}`");
            };
            self.expect(b'=', "`=`")?;
            *slot = Some(self.sparsity()?);
            self.accept(b',');
        }
        Ok(config)
    }

    fn sparsity(&mut self) -> Parse<Sparsity> {
        self.expect(b'{', "`{`, as in `{sparsity=2x4 dimension=1 stride=1}`")?;
        let mut sparsity = Sparsity { non_zero: 0, block_size: 0, dimension: 0, stride: 1 };
        while !self.accept(b'}') {
            if self.keyword("sparsity") {
                self.expect(b'=', "`=`")?;
                (sparsity.non_zero, sparsity.block_size) = self.fraction()?;
            } else if self.keyword("dimension") {
                self.expect(b'=', "`=`")?;
                sparsity.dimension = self.integer("the number of a dim")?;
            } else if self.keyword("stride") {
                self.expect(b'=', "`=`")?;
                sparsity.stride = self.integer("a stride")?;
            } else {
                return self.unexpected("`sparsity=`, `dimension=`, `stride=` or `}`");
            }
            self.accept(b',');
        }
        Ok(sparsity)
    }

    /// `NxM`
    fn fraction(&mut self) -> Parse<(i64, i64)> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let parts = self.cursor.sizes().split_once('x');
        match parts.and_then(|(n, m)| Some((n.parse().ok()?, m.parse().ok()?))) {
            Some(fraction) => Ok(fraction),
            None => {
                let error = SyntaxError::new(self.span_since(start), "not a sparsity");
                self.fail(error.expected("how many of how many, as `2x4`"))
            }
        }
    }

    /// `domain := "{" "kind" "=" string "," "entry" "=" sharding "," "exit" "=" sharding "}"`
    pub(super) fn domain(&mut self) -> Parse<DomainMetadata> {
        self.expect(b'{', "`{kind=\"sharding\", entry={...}, exit={...}}`")?;
        let part = |parser: &mut Self, word: &str| {
            if !parser.keyword(word) {
                return parser.unexpected(&format!("`{word}=`"));
            }
            parser.expect(b'=', "`=`")
        };
        part(self, "kind")?;
        let kind = self.string("a string in quotes")?;
        self.expect(b',', "`,` and `entry=`")?;
        part(self, "entry")?;
        let entry = self.sharding()?;
        self.expect(b',', "`,` and `exit=`")?;
        part(self, "exit")?;
        let exit = self.sharding()?;
        self.expect(b'}', "`}`")?;
        Ok(DomainMetadata { kind, entry, exit })
    }
}
