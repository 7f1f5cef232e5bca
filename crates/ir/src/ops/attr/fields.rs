//! The types that attributes can have.

use smallvec::SmallVec;
use smol_str::SmolStr;

use super::{AttrField, AttrKind, AttrValue, Real, Word};
use crate::entity::CompId;
use crate::ops::contract::SparsityConfig;
use crate::ops::control::{DomainMetadata, OutputAlias};
use crate::ops::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use crate::ops::elementwise::ResultAccuracy;
use crate::types::devices::ReplicaGroups;
use crate::types::literal::Literal;
use crate::types::shape::{Dims, Shape};

macro_rules! plain_field {
    ($type:ty, $kind:ident) => {
        impl AttrField for $type {
            const KIND: AttrKind = AttrKind::$kind;
            fn from_value(value: AttrValue) -> Result<Self, String> {
                match value {
                    AttrValue::$kind(value) => Ok(value),
                    _ => Err(format!("of kind {:?}", AttrKind::$kind)),
                }
            }
            fn to_value(&self) -> Option<AttrValue> {
                Some(AttrValue::$kind(self.clone()))
            }
        }
    };
}

plain_field!(i64, Int);
plain_field!(bool, Bool);
plain_field!(Real, Float);
plain_field!(SmolStr, Str);
plain_field!(Dims, Dims);
plain_field!(SmallVec<[SliceDim; 4]>, Slices);
plain_field!(SmallVec<[PadDim; 4]>, Padding);
plain_field!(SmallVec<[WindowDim; 2]>, Window);
plain_field!(ConvDims, ConvDims);
plain_field!(Vec<Dims>, DimsLists);
plain_field!(Vec<(i64, i64)>, Pairs);
plain_field!(SparsityConfig, Sparsity);
plain_field!(ResultAccuracy, Accuracy);
plain_field!(Shape, Shape);
plain_field!(Vec<Shape>, Shapes);
plain_field!(Box<Literal>, Literal);
plain_field!(Vec<OutputAlias>, Aliasing);
plain_field!(Box<DomainMetadata>, Domain);

impl<W: Word> AttrField for Vec<W> {
    const KIND: AttrKind = AttrKind::Words;
    fn from_value(value: AttrValue) -> Result<Self, String> {
        let AttrValue::Words(words) = value else { return Err("a list of words".into()) };
        let words = words.iter().map(|word| W::from_name(word));
        words.collect::<Option<_>>().ok_or_else(|| format!("a list of {}", W::EXPECTED))
    }
    fn to_value(&self) -> Option<AttrValue> {
        let words = self.iter().map(|word| SmolStr::new_static(word.name()));
        (!self.is_empty()).then(|| AttrValue::Words(words.collect()))
    }
    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

impl AttrField for Box<ReplicaGroups> {
    const KIND: AttrKind = AttrKind::ReplicaGroups;
    fn from_value(value: AttrValue) -> Result<Self, String> {
        match value {
            AttrValue::ReplicaGroups(groups) => Ok(groups),
            _ => Err("groups of devices".into()),
        }
    }
    fn to_value(&self) -> Option<AttrValue> {
        Some(AttrValue::ReplicaGroups(self.clone()))
    }
    fn absent() -> Option<Self> {
        Some(Self::default())
    }
}

impl AttrField for CompId {
    const KIND: AttrKind = AttrKind::Computation;
    fn from_value(value: AttrValue) -> Result<Self, String> {
        match value {
            AttrValue::Computation(id) => Ok(id),
            _ => Err("a computation".into()),
        }
    }
    fn to_value(&self) -> Option<AttrValue> {
        Some(AttrValue::Computation(*self))
    }
    fn for_each_computation(&self, f: &mut dyn FnMut(CompId)) {
        f(*self);
    }
    fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) {
        *self = f(*self);
    }
}

impl AttrField for SmallVec<[CompId; 2]> {
    const KIND: AttrKind = AttrKind::Computations;
    fn from_value(value: AttrValue) -> Result<Self, String> {
        match value {
            AttrValue::Computations(ids) => Ok(ids),
            _ => Err("a list of computations".into()),
        }
    }
    fn to_value(&self) -> Option<AttrValue> {
        (!self.is_empty()).then(|| AttrValue::Computations(self.clone()))
    }
    fn absent() -> Option<Self> {
        Some(Self::new())
    }
    fn for_each_computation(&self, f: &mut dyn FnMut(CompId)) {
        self.iter().copied().for_each(f);
    }
    fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) {
        self.iter_mut().for_each(|id| *id = f(*id));
    }
}

impl<T: AttrField> AttrField for Option<T> {
    const KIND: AttrKind = T::KIND;
    fn from_value(value: AttrValue) -> Result<Self, String> {
        T::from_value(value).map(Some)
    }
    fn to_value(&self) -> Option<AttrValue> {
        self.as_ref().and_then(T::to_value)
    }
    fn absent() -> Option<Self> {
        Some(None)
    }
    fn for_each_computation(&self, f: &mut dyn FnMut(CompId)) {
        if let Some(inner) = self {
            inner.for_each_computation(f);
        }
    }
    fn map_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) {
        if let Some(inner) = self {
            inner.map_computations(f);
        }
    }
}
