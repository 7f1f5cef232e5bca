//! Formats the values of a run. All other reports are texts of the library.

use std::fmt::Write as _;

use tilewright::ir::Literal;

/// `run`: each output with its first elements.
pub(crate) fn outputs<'a>(prefix: &str, results: impl IntoIterator<Item = &'a Literal>) -> String {
    let mut text = String::new();
    let leaves = results.into_iter().flat_map(Literal::leaves);
    let leaves = leaves.filter(|leaf| !matches!(leaf, Literal::Token));
    for (i, leaf) in leaves.enumerate() {
        let elements = tilewright::elements(leaf, SHOWN);
        let more = leaf.as_array().is_some_and(|array| array.len() > SHOWN);
        let dots = if more { ", ..." } else { "" };
        let _ = writeln!(text, "{prefix}{i} {} = {{{}{dots}}}", leaf.shape(), elements.join(", "));
    }
    text
}

/// The number of elements of an output that are shown.
const SHOWN: usize = 16;
