//! The dims and the window of a convolution.

use super::super::error::SyntaxError;
use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::mlir::{
    Attribute, Attributes, DenseArray, DenseElements, Elements, Scalar, Sign, TensorType, Type,
};

/// The three lists of dims: for each the letters of its dims that are not spatial, and the names
/// of the parameters.
const LISTS: [[(&str, &str); 2]; 3] = [
    [("b", "input_batch_dimension"), ("f", "input_feature_dimension")],
    [("i", "kernel_input_feature_dimension"), ("o", "kernel_output_feature_dimension")],
    [("b", "output_batch_dimension"), ("f", "output_feature_dimension")],
];
const SPATIAL: [&str; 3] =
    ["input_spatial_dimensions", "kernel_spatial_dimensions", "output_spatial_dimensions"];

impl Parser<'_> {
    /// `[b, 0, f]x[0, i, o]->[b, 0, f]`.
    pub(in super::super) fn convolution_dims(&mut self, dialect: &str) -> Parse<Attribute> {
        let mut parameters = Attributes::new();
        for (index, (letters, spatial)) in LISTS.iter().zip(SPATIAL).enumerate() {
            match index {
                1 => self.expect_word("x")?,
                2 => self.expect("->")?,
                _ => {}
            }
            let (named, dims) = self.dim_letters(letters)?;
            for ((_, name), at) in letters.iter().zip(named) {
                parameters.push(((*name).into(), Attribute::i64(at)));
            }
            let dims = Attribute::DenseArray(DenseArray::I64(dims));
            parameters.push((spatial.into(), dims));
        }
        Ok(Attribute::structure(dialect, "conv", parameters))
    }

    /// `[b, 0, 1, f]`: the places of the letters, and of the numbers in their order.
    fn dim_letters(&mut self, letters: &[(&str, &str); 2]) -> Parse<([i64; 2], Vec<i64>)> {
        let mut named = [None; 2];
        let mut numbered = Vec::new();
        let mut at = 0;
        self.skip();
        let start = self.position;
        self.list(("[", "]"), |parser| {
            if parser.at_number() {
                numbered.push((parser.integer("a dim")?, at));
            } else {
                let word = parser.peek_word();
                let slot = letters.iter().zip(&mut named).find(|((l, _), _)| *l == word);
                match slot {
                    Some((_, slot)) if slot.is_none() => *slot = Some(at),
                    _ => {
                        let [(first, _), (second, _)] = letters;
                        let expected = format!("a number, `{first}` or `{second}`, each once");
                        return Err(parser.unexpected(expected));
                    }
                }
                parser.position += word.len();
            }
            at += 1;
            Ok(())
        })?;
        numbered.sort_unstable();
        let in_order = (0..).zip(&numbered).all(|(index, &(dim, _))| dim == index);
        match named {
            [Some(first), Some(second)] if in_order => {
                Ok(([first, second], numbered.into_iter().map(|(_, at)| at).collect()))
            }
            _ => {
                let [(first, _), (second, _)] = letters;
                let message = format!("this list must have `{first}`, `{second}`, 0, 1, ...");
                Err(SyntaxError::new(self.span_since(start), message))
            }
        }
    }

    /// `dim_numbers = ..., window = {stride = [1], pad = [[0, 0]]}`.
    pub(super) fn convolution(&mut self, draft: &mut Draft) -> Parse<()> {
        self.expect_word("dim_numbers")?;
        self.expect("=")?;
        let dims = self.convolution_dims(&draft.dialect())?;
        draft.set("dimension_numbers", dims);
        self.expect(",")?;
        self.expect_word("window")?;
        self.expect("=")?;
        self.list(("{", "}"), |parser| match parser.peek() {
            // MLIR takes a comma after the last part, too.
            b'}' => Ok(()),
            _ => parser.window_part(draft),
        })
    }

    fn window_part(&mut self, draft: &mut Draft) -> Parse<()> {
        let word = self.peek_word();
        let name = match word {
            "stride" => "window_strides",
            "pad" => "padding",
            "lhs_dilate" => "lhs_dilation",
            "rhs_dilate" => "rhs_dilation",
            "reverse" => "window_reversal",
            _ => {
                let expected = "`stride`, `pad`, `lhs_dilate`, `rhs_dilate` or `reverse`";
                return Err(self.unexpected(expected));
            }
        };
        if draft.attributes.iter().any(|(other, _)| other == name) {
            return Err(self.error_here(format!("`{word}` is here twice")));
        }
        self.position += word.len();
        self.expect("=")?;
        let value = match word {
            "pad" => self.window_padding()?,
            "reverse" => {
                let mut values = Vec::new();
                self.list(("[", "]"), |parser| {
                    values.push(parser.truth()?);
                    Ok(())
                })?;
                Attribute::DenseArray(DenseArray::Bool(values))
            }
            _ => Attribute::DenseArray(DenseArray::I64(self.integers()?)),
        };
        draft.set(name, value);
        Ok(())
    }

    /// `[[0, 1], [2, 3]]`, as a constant.
    fn window_padding(&mut self) -> Parse<Attribute> {
        let mut rows = 0_i64;
        let mut values = Vec::new();
        self.list(("[", "]"), |parser| {
            parser.expect("[")?;
            values.push(parser.integer("the padding before a dim")?);
            parser.expect(",")?;
            values.push(parser.integer("the padding after a dim")?);
            rows += 1;
            parser.expect("]")
        })?;
        let ty = TensorType {
            dims: [Some(rows), Some(2)].into_iter().collect(),
            element: Scalar::Integer { bits: 64, sign: Sign::Signless },
            encoding: None,
        };
        // Like MLIR, one value stands for many that are equal.
        if values.windows(2).all(|pair| pair.first() == pair.last()) {
            values.truncate(1);
        }
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let elements = Elements::Bytes(bytes.into());
        Ok(Attribute::Dense(DenseElements { ty: Box::new(Type::Tensor(ty)), elements }))
    }
}
