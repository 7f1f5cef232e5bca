//! `stablehlo.einsum` as a dot and a transpose, as XLA's builder makes them (`xla/hlo/builder/lib/matrix.cc`).

use smol_str::SmolStr;
use tilewright_ir::ops::elementwise::{CompareAttrs, Direction};
use tilewright_ir::ops::reduce::ReduceAttrs;
use tilewright_ir::ops::shaping::{IotaAttrs, TransposeAttrs};
use tilewright_ir::shape::UNBOUNDED;
use tilewright_ir::{
    ArrayLiteral, ArrayShape, Data, Dims, ElementType, InstId, Literal, Op, Opcode, Shape,
};

use super::attributes::{misfit, missing, optional_text};
use super::body::Body;
use super::error::{Import, ImportError};
use super::literal;
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
    /// Reads `ij,jk->ik` or `...j,jk->...k` for operands and a result of these ranks; `None` unless each letter of
    /// the result is there once, and in an operand.
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
        let all = [(left, of_left), (right, of_right), (result, of_result)];
        let is_letter = |c: &char| c.is_ascii_alphabetic() || UNNAMED.contains(c);
        let fits = all.iter().all(|(list, rank)| list.len() == *rank && list.iter().all(is_letter));
        let is_once = (1..result.len()).all(|at| !result[..at].contains(&result[at]));
        let is_there = result.iter().all(|letter| left.contains(letter) || right.contains(letter));
        (fits && is_once && is_there).then_some(config)
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
    let text = config(operation)?;
    let operands = [body.operand(operation, 0)?, body.operand(operation, 1)?];
    product(body, operation, &text, operands)
}

/// Converts `stablehlo.unary_einsum`: an einsum with the number 1.
pub(crate) fn unary_einsum<'p>(body: &mut Body<'_, 'p>, operation: &'p Operation) -> Import<()> {
    let text = format!(",{}", config(operation)?);
    let operand = body.operand(operation, 0)?;
    let ty = body.array(operation, operand)?.element_type;
    let one = literal::real(ty, 1.0).or_else(|| literal::whole(ty, 1));
    let one =
        one.ok_or_else(|| ImportError::unsupported(operation, "takes numbers that have no 1"))?;
    let one = body.constant(Literal::Array(one), ArrayShape::scalar(ty))?;
    product(body, operation, &text, [one, operand])
}

const CONFIG: &str = "einsum_config";

fn config(operation: &Operation) -> Import<SmolStr> {
    optional_text(operation, CONFIG)?.ok_or_else(|| missing(operation, CONFIG))
}

impl Body<'_, '_> {
    /// Takes the diagonal of dims that share a letter, and sums dims whose letters are not used otherwise. Returns the
    /// letters of the dims that are left.
    fn without_own(
        &mut self,
        operation: &Operation,
        id: InstId,
        letters: &[char],
        is_used: impl Fn(&char) -> bool,
    ) -> Import<(InstId, Vec<char>)> {
        let shape = self.array(operation, id)?.without_layout();
        let (mut kept, mut sizes, mut dynamic) = (Vec::new(), Dims::new(), Vec::new());
        let (mut dimensions, mut diagonals) = (Dims::new(), Vec::new());
        for ((at, letter), (dim, &size)) in
            (0i64..).zip(letters).zip(shape.dims().iter().enumerate())
        {
            match place(letters, *letter).filter(|&first| first < at) {
                Some(first) => {
                    diagonals.push((first, at));
                    dimensions.push(at);
                }
                None if is_used(letter) => {
                    kept.push(*letter);
                    sizes.push(size);
                    dynamic.push(shape.dim_is_dynamic(dim));
                }
                None => dimensions.push(at),
            }
        }
        if dimensions.is_empty() {
            return Ok((id, kept));
        }
        if !diagonals.is_empty() && shape.dims().contains(&UNBOUNDED) {
            return Err(super::sizes::unknown(operation));
        }
        let ty = shape.element_type;
        let zero = ArrayLiteral::new(ty, [], Data::zeros(ty, 1));
        let zero = Literal::Array(zero.map_err(|error| self.invalid(&error.to_string()))?);
        let mut masked = id;
        for (first, second) in diagonals {
            let mask = self.diagonal(&shape, first, second)?;
            let zeros = self.constant(zero.clone(), shape.clone())?;
            masked = self.emit(Op::Select, Shape::Array(shape.clone()), &[mask, masked, zeros])?;
        }
        let init = self.constant(zero, ArrayShape::scalar(ty))?;
        let reduce = ReduceAttrs { dimensions, to_apply: self.sum(ty)? };
        let to = Shape::Array(ArrayShape::new(ty, sizes).with_dynamic(&dynamic));
        let sum = self.emit(Op::Reduce(Box::new(reduce)), to, &[masked, init])?;
        Ok((sum, kept))
    }

    /// Returns a mask of the elements that have one index in both dims.
    fn diagonal(&mut self, of: &ArrayShape, first: i64, second: i64) -> Import<InstId> {
        let mut count = |dimension| {
            let op = Op::Iota(Box::new(IotaAttrs { dimension }));
            self.emit(op, Shape::Array(of.clone().with_element_type(ElementType::S32)), &[])
        };
        let counts = [count(first)?, count(second)?];
        let attrs = CompareAttrs { direction: Direction::Eq, order: None };
        let to = Shape::Array(of.clone().with_element_type(ElementType::Pred));
        self.emit(Op::Compare(Box::new(attrs)), to, &counts)
    }
}

/// Adds the instructions of a product of two operands.
fn product<'p>(
    body: &mut Body<'_, 'p>,
    operation: &'p Operation,
    text: &str,
    operands: [InstId; 2],
) -> Import<()> {
    let result = body.result_array(operation)?;
    let [left, right] = [body.array(operation, operands[0])?, body.array(operation, operands[1])?];
    let Some(config) = Config::of(text, [left.rank(), right.rank(), result.rank()]) else {
        let expected =
            "letters for the dims of its operands, and once each of the result's, which they have";
        return Err(misfit(operation, CONFIG, expected));
    };
    let Config { operands: [of_left, of_right], result: of_result } = config;
    let [left, right] = operands;
    let is_used =
        |other: &[char], letter: &char| of_result.contains(letter) || other.contains(letter);
    let (left, kept_left) =
        body.without_own(operation, left, &of_left, |letter| is_used(&of_right, letter))?;
    let (right, kept_right) =
        body.without_own(operation, right, &of_right, |letter| is_used(&of_left, letter))?;
    let config = Config { operands: [kept_left, kept_right], result: of_result };
    let operands = [left, right];
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
