//! Quantised types: integers that stand for floats, `real = (stored - zero) scale`.

use tilewright_ir::ElementType;
use tilewright_ir::element::NumberClass;

use crate::mlir::{Scalar, TensorType, Type};

/// A quantised type.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::import) struct Quantized {
    /// The type of the integers.
    pub(super) storage: ElementType,
    /// The least and the greatest stored integer.
    pub(super) range: (i64, i64),
    /// The type of the floats that they stand for.
    pub(super) expressed: ElementType,
    /// The dim whose indices have a scale and a zero each; none if all elements have the same.
    pub(super) dim: Option<i64>,
    pub(super) scales: Vec<f64>,
    pub(super) zeros: Vec<i64>,
}

impl Quantized {
    /// Reads the type of a value; `None` if it is not quantised, or not in this way.
    pub(in crate::import) fn of(ty: &Type) -> Option<Self> {
        match ty {
            Type::Tensor(tensor) => Self::in_tensor(tensor),
            _ => None,
        }
    }

    /// Reads the type of the elements of a tensor, which has a scale for all or for each index of a dim.
    pub(in crate::import) fn in_tensor(tensor: &TensorType) -> Option<Self> {
        let Scalar::Other(text) = &tensor.element else { return None };
        let read = Self::read(text)?;
        let Some(dim) = read.dim else { return Some(read) };
        let size = usize::try_from(dim).ok().and_then(|dim| *tensor.dims.get(dim)?);
        (size.and_then(|size| usize::try_from(size).ok()) == Some(read.scales.len()))
            .then_some(read)
    }

    /// Reads `!quant.uniform<i8<-127:127>:f32:1, {0.5:3, 0.25}>`.
    fn read(text: &str) -> Option<Self> {
        let inner = text.strip_prefix("!quant.uniform<")?.strip_suffix('>')?;
        let (types, pairs) = inner.split_once(',')?;
        let (storage, rest) = types.split_at(types.find([':', '<'])?);
        let storage = integer(storage.trim())?;
        let all = limits(storage)?;
        let (range, rest) = match rest.strip_prefix('<') {
            Some(rest) => {
                let (range, rest) = rest.split_once('>')?;
                let (least, greatest) = range.split_once(':')?;
                ((number(least)?, number(greatest)?), rest)
            }
            None => (all, rest),
        };
        if range.0 < all.0 || range.1 > all.1 || range.0 >= range.1 {
            return None;
        }
        let (expressed, dim) = match rest.trim().strip_prefix(':')?.split_once(':') {
            Some((expressed, dim)) => (expressed, Some(number(dim)?)),
            None => (rest.trim().strip_prefix(':')?, None),
        };
        let expressed = ElementType::from_name(expressed.trim()).filter(|ty| ty.is_float())?;
        let pairs = pairs.trim();
        let pairs = match dim {
            Some(_) => pairs.strip_prefix('{')?.strip_suffix('}')?,
            None => pairs,
        };
        let pairs = pairs.split(',').map(|pair| -> Option<(f64, i64)> {
            match pair.split_once(':') {
                Some((scale, zero)) => Some((number(scale)?, number(zero)?)),
                None => Some((number(pair)?, 0)),
            }
        });
        let (scales, zeros): (Vec<f64>, Vec<i64>) =
            pairs.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        #[allow(
            clippy::cast_possible_truncation,
            reason = "scales are rounded where they are used"
        )]
        let are_positive =
            scales.iter().all(|&scale| (scale as f32).is_finite() && scale as f32 > 0.0);
        let are_stored = zeros.iter().all(|zero| (range.0..=range.1).contains(zero));
        (are_positive && are_stored && (dim.is_some() || scales.len() == 1)).then_some(Self {
            storage,
            range,
            expressed,
            dim,
            scales,
            zeros,
        })
    }

    /// The type of the stored integers.
    pub(in crate::import) fn storage(&self) -> ElementType {
        self.storage
    }

    /// The type of floats in which a value is computed from its stored integer.
    pub(super) fn computed(&self) -> ElementType {
        match self.expressed {
            ElementType::F64 => ElementType::F64,
            _ => ElementType::F32,
        }
    }

    /// Whether all integers of the storage may be stored.
    pub(super) fn is_whole_range(&self) -> bool {
        limits(self.storage) == Some(self.range)
    }

    /// Whether another type stores the same integers for the same floats, perhaps along another dim.
    pub(super) fn means_the_same(&self, other: &Self) -> bool {
        let dim = self.dim;
        *self == Self { dim, ..other.clone() }
    }

    /// Whether stored integers are multiples of the scale as they are.
    pub(super) fn is_centered(&self) -> bool {
        self.zeros.iter().all(|&zero| zero == 0)
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

fn integer(name: &str) -> Option<ElementType> {
    let name = match name.strip_prefix('i') {
        Some(bits) => format!("s{bits}"),
        None => name.replace("ui", "u"),
    };
    ElementType::from_name(&name).filter(|ty| ty.is_integer())
}

/// The least and the greatest integer of a type, if 32 bits with a sign hold them.
fn limits(ty: ElementType) -> Option<(i64, i64)> {
    let is_signed = ty.class() == NumberClass::Signed;
    let bits = if is_signed { ty.bits().checked_sub(1)? } else { ty.bits() };
    let most = 1_i64.checked_shl(bits).filter(|_| bits < 32)?;
    Some((if is_signed { -most } else { 0 }, most - 1))
}
