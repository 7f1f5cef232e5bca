//! The dim labels of convolutions.

use smallvec::SmallVec;
use tilewright_ir::ops::dims::ConvDims;

use super::{Parse, Parser, SyntaxError};

/// Two lettered dims and the spatial ones, by number.
type Labels = (i64, i64, SmallVec<[i64; 3]>);

impl Parser<'_> {
    /// ```text
    /// conv_dims := labels "_" labels "->" labels
    /// ```
    /// with `b`, `f` and digits for input and result, `i`, `o` and digits for
    /// the kernel: the position of a label is the dim it names. Custom calls
    /// have `?` for others.
    pub(super) fn conv_dims(&mut self) -> Parse<ConvDims> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        while matches!(self.cursor.peek(), b'a'..=b'z' | b'0'..=b'9' | b'_' | b'?') {
            self.cursor.bump();
        }
        self.cursor.eat_text("->");
        while matches!(self.cursor.peek(), b'a'..=b'z' | b'0'..=b'9' | b'?') {
            self.cursor.bump();
        }
        let text = self.cursor.since(start);
        if let Some(dims) = conv_dims(text) {
            return Ok(dims);
        }
        if text.is_empty() {
            return self.unexpected("dim labels, as `b01f_01io->b01f`");
        }
        let span = self.span_since(start);
        let error = SyntaxError::new(span, "these dim labels make no sense")
            .expected("labels as `b01f_01io->b01f`, each once, with as many digits in each part");
        self.fail(error)
    }
}

fn conv_dims(text: &str) -> Option<ConvDims> {
    let (operands, output) = text.split_once("->")?;
    let (input, kernel) = operands.split_once('_')?;
    let (input_batch, input_feature, input_spatial) = labels(input, b'b', b'f')?;
    let (kernel_input_feature, kernel_output_feature, kernel_spatial) = labels(kernel, b'i', b'o')?;
    let (output_batch, output_feature, output_spatial) = labels(output, b'b', b'f')?;
    (input_spatial.len() == kernel_spatial.len() && input_spatial.len() == output_spatial.len())
        .then_some(ConvDims {
            input_batch,
            input_feature,
            input_spatial,
            kernel_input_feature,
            kernel_output_feature,
            kernel_spatial,
            output_batch,
            output_feature,
            output_spatial,
        })
}

/// Returns the position of each label; each must occur once.
fn labels(text: &str, first: u8, second: u8) -> Option<Labels> {
    let position = |label: u8| -> Option<i64> {
        let mut found = text.bytes().enumerate().filter(|&(_, b)| b == label);
        let (at, _) = found.next()?;
        if found.next().is_some() { None } else { i64::try_from(at).ok() }
    };
    if text.len() > ConvDims::MAX_RANK {
        return None;
    }
    // `?` represents a dim without a name. At most ten digits and two letters are left.
    let named = text.bytes().filter(|&label| label != b'?').count();
    let digits = named.checked_sub(2).filter(|&digits| digits <= 10)?;
    let digits = (b'0'..=b'9').take(digits);
    Some((position(first)?, position(second)?, digits.map(position).collect::<Option<_>>()?))
}
