//! Small parts that only one form has.

use super::super::attribute::integer_type;
use super::super::error::SyntaxError;
use super::super::operation::Draft;
use super::super::{Parse, Parser};
use crate::mlir::{Attribute, DenseArray, Scalar, Sign, TensorType, Type};

impl Parser<'_> {
    /// `[0:4:2, 1:3]`: the ranges of a slice.
    pub(super) fn slice_ranges(&mut self, draft: &mut Draft) -> Parse<()> {
        let (mut starts, mut limits, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        self.list(("[", "]"), |parser| {
            starts.push(parser.integer("the beginning of a range, as `0:4`")?);
            parser.expect(":")?;
            limits.push(parser.integer("the end of a range")?);
            let stride = if parser.accept(":") { parser.integer("a stride")? } else { 1 };
            strides.push(stride);
            Ok(())
        })?;
        let list = |values| Attribute::DenseArray(DenseArray::I64(values));
        draft.set("start_indices", list(starts));
        draft.set("limit_indices", list(limits));
        draft.set("strides", list(strides));
        Ok(())
    }

    /// `e5m10`: the bits of the exponent and the mantissa.
    pub(super) fn reduced_format(&mut self, draft: &mut Draft) -> Parse<()> {
        self.skip();
        let start = self.position;
        let word = self.word("a format, as `e5m10`")?;
        let bits = word.strip_prefix('e').and_then(|bits| bits.split_once('m'));
        let bits = bits.and_then(|(exponent, mantissa)| {
            Some((exponent.parse::<u16>().ok()?, mantissa.parse::<u16>().ok()?))
        });
        let Some((exponent, mantissa)) = bits else {
            let place = self.span_since(start);
            return Err(SyntaxError::new(place, "this is no format").expected("`e5m10`"));
        };
        draft.set("exponent_bits", Attribute::Integer(exponent.into(), integer_type(32)));
        draft.set("mantissa_bits", Attribute::Integer(mantissa.into(), integer_type(32)));
        Ok(())
    }

    /// The result of `mhlo.xla.rng_get_and_update_state`, whose type is not written.
    pub(super) fn generator_state(&mut self, draft: &mut Draft) -> Parse<()> {
        draft.results.push(Type::Tensor(TensorType {
            dims: [Some(2)].into_iter().collect(),
            element: Scalar::Integer { bits: 64, sign: Sign::Unsigned },
            encoding: None,
        }));
        Ok(())
    }

    /// `({...}, {...})` after the operands of a composite, or nothing.
    pub(super) fn composite_regions(&mut self, draft: &mut Draft) -> Parse<()> {
        if self.peek() == b'(' { self.generic_regions(draft) } else { Ok(()) }
    }

    /// `(%a) inits (%b) dimension=0 attributes {...} {region} : type`.
    pub(super) fn scan(&mut self, draft: &mut Draft) -> Parse<()> {
        self.expect("(")?;
        self.operands(draft)?;
        self.expect(")")?;
        let inputs = draft.operands.len();
        self.expect_word("inits")?;
        self.expect("(")?;
        self.operands(draft)?;
        self.expect(")")?;
        let inits = draft.operands.len() - inputs;
        self.expect_word("dimension")?;
        self.expect("=")?;
        let dimension = self.integer("a dimension")?;
        draft.set("dimension", Attribute::Integer(dimension.into(), integer_type(64)));
        if self.accept_word("attributes") {
            self.dictionary_into(&mut draft.attributes)?;
        }
        let region = self.region(&[])?;
        draft.regions.push(region);
        self.expect(":")?;
        self.form_types(crate::dialect::Types::Function, draft)?;
        let narrow = |count| i64::try_from(count).unwrap_or(i64::MAX);
        let sizes = |first, second| {
            let sizes = vec![narrow(first), narrow(second)];
            Attribute::DenseArray(DenseArray::Integer(32, sizes))
        };
        let outputs = draft.results.len().saturating_sub(inits);
        if draft.attributes.iter().all(|(name, _)| name != "operandSegmentSizes") {
            draft.set("operandSegmentSizes", sizes(inputs, inits));
            draft.set("resultSegmentSizes", sizes(outputs, inits));
        }
        Ok(())
    }
}
