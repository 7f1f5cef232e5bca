//! `stablehlo.einsum` as a dot and a transpose, as XLA's builder makes them (`xla/hlo/builder/lib/matrix.cc`).

use tilewright_ir::Opcode;
use tilewright_ir::ops::shaping::TransposeAttrs;
use tilewright_ir::{ArrayShape, Dims, Op, Shape};

use super::attributes::{misfit, missing, optional_text};
use super::body::Body;
use super::error::Import;
use crate::mlir::Operation;

/// The dims of both operands and of the result, a letter each.
struct Config {
    operands: [Vec<char>; 2],
    result: Vec<char>,
}

/// Letters of dims that `...` stands for: the last dim has the first of them. There are as many as of others.
const UNNAMED: std::ops::Range<char> = '\u{e000}'..'\u{e034}';

/// Returns the letters of the dims of an array of this rank, where `...` stands for those not named.
fn letters(text: &str, rank: usize) -> Vec<char> {
    let Some((before, after)) = text.split_once("...") else { return text.chars().collect() };
    let named = before.chars().count() + after.chars().count();
    let mut unnamed: Vec<char> = UNNAMED.take(rank.saturating_sub(named)).collect();
    unnamed.reverse();
    before.chars().chain(unnamed).chain(after.chars()).collect()
}

impl Config {
    /// Reads `ij,jk->ik` or `...j,jk->...k` for operands and a result of these ranks; `None` unless each
    /// letter of an operand is there once, and in the other operand or the result.
    fn of(text: &str, [of_left, of_right, of_result]: [usize; 3]) -> Option<Self> {
        if !text.is_ascii() || of_left.max(of_right).max(of_result) > UNNAMED.count() {
            return None;
        }
        let (operands, result) = text.split_once("->")?;
        let (left, right) = operands.split_once(',')?;
        let config = Self {
            operands: [letters(left.trim(), of_left), letters(right.trim(), of_right)],
            result: letters(result.trim(), of_result),
        };
        let Self { operands: [left, right], result } = &config;
        let all = [left, right, result];
        let is_once = |list: &Vec<char>| (1..list.len()).all(|at| !list[..at].contains(&list[at]));
        let is_used = |letter: &char| all.iter().filter(|list| list.contains(letter)).count() > 1;
        let is_letter = |c: &char| c.is_ascii_alphabetic() || UNNAMED.contains(c);
        let is_plain = all.iter().all(|list| list.iter().all(is_letter));
        let fits = is_plain && all.iter().all(|list| is_once(list) && list.iter().all(is_used));
        fits.then_some(config)
    }

    /// Returns the dims of both operands that have the letters of the left one for which this holds.
    fn shared(&self, is_one: impl Fn(&char) -> bool) -> [Dims; 2] {
        let [left, right] = &self.operands;
        let letters = left.iter().filter(|letter| right.contains(letter) && is_one(letter));
        let (mut of_left, mut of_right) = (Dims::new(), Dims::new());
        for letter in letters {
            of_left.extend(place(left, *letter));
            of_right.extend(place(right, *letter));
        }
        [of_left, of_right]
    }
}

fn place(letters: &[char], letter: char) -> Option<i64> {
    letters.iter().zip(0..).find_map(|(&other, at)| (other == letter).then_some(at))
}

/// Converts `stablehlo.einsum`.
pub(crate) fn einsum<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    const CONFIG: &str = "einsum_config";
    let text = optional_text(operation, CONFIG)?.ok_or_else(|| missing(operation, CONFIG))?;
    let result = body.result_array(operation)?;
    let operands = [body.operand(operation, 0)?, body.operand(operation, 1)?];
    let [left, right] = [body.array(operation, operands[0])?, body.array(operation, operands[1])?];
    let Some(config) = Config::of(&text, [left.rank(), right.rank(), result.rank()]) else {
        let expected =
            "a product of two operands, each dim of which is one of the other or of the result";
        return Err(misfit(operation, CONFIG, expected));
    };
    let mut op = body.op(Opcode::Dot, operation)?;
    if let Op::Dot(attrs) = &mut op {
        let of_result = |letter: &char| config.result.contains(letter);
        [attrs.lhs_batch_dims, attrs.rhs_batch_dims] = config.shared(of_result);
        [attrs.lhs_contracting_dims, attrs.rhs_contracting_dims] =
            config.shared(|letter| !of_result(letter));
    }
    // Dims of the batch come first, then those of each operand.
    let [left, right] = &config.operands;
    let batch = left.iter().filter(|letter| right.contains(letter));
    let own = |list: &[char], other: &[char]| -> Vec<char> {
        list.iter().copied().filter(|letter| !other.contains(letter)).collect()
    };
    let made: Vec<char> = batch
        .copied()
        .chain(own(left, right))
        .chain(own(right, left))
        .filter(|letter| config.result.contains(letter))
        .collect();
    let size = |letter: &char| {
        let at = usize::try_from(place(&config.result, *letter)?).ok()?;
        result.dims().get(at).copied()
    };
    let dims: Option<Dims> = made.iter().map(size).collect();
    let order: Option<Dims> = config.result.iter().map(|&letter| place(&made, letter)).collect();
    let (Some(dims), Some(dimensions)) = (dims, order) else {
        return Err(misfit(operation, CONFIG, "as many letters as the result has dims"));
    };
    let ty = result.element_type;
    for name in ["grad_x", "grad_y"] {
        body.scope.attributes.push((name.into(), "false".into()));
    }
    let dot = body.emit(op, Shape::Array(ArrayShape::new(ty, dims)), &operands)?;
    body.scope.attributes.retain(|(name, _)| !name.starts_with("grad_"));
    let transpose = Op::Transpose(Box::new(TransposeAttrs { dimensions }));
    let id = body.emit(transpose, Shape::Array(result), &[dot])?;
    body.bind(operation, id)
}
