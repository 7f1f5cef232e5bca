//! Attributes that any instruction or module may have.

use tilewright_ir::Dims;
use tilewright_ir::metadata::{
    FrontendAttributes, InputOutputAlias, Origin, OriginTree, OriginalArray, Statistics,
};

use super::verbatim::Extent;
use super::{Parse, Parser};

impl Parser<'_> {
    /// ```text
    /// frontend := "{" [word "=" (string | json) ("," ...)*] "}"
    /// ```
    pub(super) fn frontend_attributes(&mut self) -> Parse<FrontendAttributes> {
        self.braced("`{`, as in `{name=\"value\"}`", |parser| {
            let (name, _) = parser.attribute_word()?;
            parser.cursor.skip_space();
            let value: Box<str> = if parser.cursor.peek() == b'{' {
                parser.verbatim(Extent::Json)?.0
            } else {
                parser.string("a string in quotes, or `{...}`")?.as_str().into()
            };
            Ok((name.into(), value))
        })
    }

    /// `booleans := "{" [boolean ("," boolean)*] "}"`
    pub(super) fn booleans(&mut self) -> Parse<Vec<bool>> {
        self.braced("`{`, as in `{true,false}`", |parser| {
            parser.cursor.skip_space();
            parser.boolean()
        })
    }

    /// `boolean | booleans`
    pub(super) fn one_or_more_booleans(&mut self) -> Parse<Vec<bool>> {
        self.cursor.skip_space();
        if self.cursor.peek() == b'{' { self.booleans() } else { Ok(vec![self.boolean()?]) }
    }

    /// `statistics := "{" "visualizing_index" "=" integer ("," word "=" number)* "}"`
    pub(super) fn statistics(&mut self) -> Parse<Statistics> {
        self.expect(b'{', "`{`, as in `{visualizing_index=0,stat=33}`")?;
        let mut statistics = Statistics::default();
        while !self.accept(b'}') {
            let (name, _) = self.attribute_word()?;
            if name == "visualizing_index" {
                statistics.visualizing_index = self.integer("the number of a statistic")?;
            } else {
                statistics.values.push((name.into(), self.real64()?));
            }
            self.accept(b',');
        }
        Ok(statistics)
    }

    /// `origin := "{" ("[" "synthetic_call" "]" | tree) "}"`
    pub(super) fn origin(&mut self) -> Parse<Origin> {
        self.expect(b'{', "`{`, as in `{{\"x\"}}`")?;
        let origin = if self.accept(b'[') {
            if !self.keyword("synthetic_call") {
                return self.unexpected("`synthetic_call`");
            }
            self.expect(b']', "`]`")?;
            Origin::SyntheticCall
        } else {
            Origin::Value(self.origin_tree()?)
        };
        self.expect(b'}', "`}`")?;
        Ok(origin)
    }

    /// ```text
    /// tree := "{" [string [index]] "}" | "(" [tree ("," tree)*] ")"
    /// ```
    fn origin_tree(&mut self) -> Parse<OriginTree> {
        self.cursor.skip_space();
        if self.cursor.peek() == b'(' {
            return self.nested(|parser| {
                parser.list(b'(', b')', "`(`", Self::origin_tree).map(OriginTree::Tuple)
            });
        }
        self.expect(b'{', "`{` and the name of an instruction, or `(`")?;
        if self.accept(b'}') {
            return Ok(OriginTree::Array(None));
        }
        self.rest_of_array().map(|array| OriginTree::Array(Some(array)))
    }

    /// `string [index] "}"`
    pub(super) fn rest_of_array(&mut self) -> Parse<OriginalArray> {
        let instruction = self.string("the name of an instruction in quotes")?;
        self.cursor.skip_space();
        let part = if self.cursor.peek() == b'{' { self.shape_index()? } else { Dims::new() };
        self.expect(b'}', "`}`")?;
        Ok(OriginalArray { instruction, part })
    }

    /// ```text
    /// aliases := "{" [alias ("," alias)*] "}"
    /// alias   := index ":" "(" integer "," index ["," ("may-alias" | "must-alias")] ")"
    /// ```
    pub(super) fn input_output_alias(&mut self) -> Parse<Vec<InputOutputAlias>> {
        self.braced("`{`, as in `{ {0}: (1, {}, may-alias) }`", |parser| {
            let output = parser.shape_index()?;
            parser.expect(b':', "`:` and a parameter, as `(1, {}, may-alias)`")?;
            let (parameter, parameter_part) = parser.parameter_part()?;
            let mut must = false;
            if parser.accept(b',') {
                must = parser.keyword("must-alias");
                if !must && !parser.keyword("may-alias") {
                    return parser.unexpected("`may-alias` or `must-alias`");
                }
            }
            parser.expect(b')', "`)`")?;
            Ok(InputOutputAlias { output, parameter, parameter_part, must })
        })
    }

    /// `donors := "{" ["(" integer "," index ")" ("," ...)*] "}"`
    pub(super) fn buffer_donors(&mut self) -> Parse<Vec<(i64, Dims)>> {
        self.braced("`{`, as in `{ (0, {}) }`", |parser| {
            let donor = parser.parameter_part()?;
            parser.expect(b')', "`)`")?;
            Ok(donor)
        })
    }

    /// `"(" integer "," index`
    fn parameter_part(&mut self) -> Parse<(i64, Dims)> {
        self.expect(b'(', "`(` and the number of a parameter")?;
        let parameter = self.integer("the number of a parameter")?;
        self.expect(b',', "`,` and which part of it")?;
        Ok((parameter, self.shape_index()?))
    }
}
