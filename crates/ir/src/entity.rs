//! Typed ids and the maps they index.
//!
//! A [`Module`](crate::Module) owns everything in flat maps, and other code refers to its parts
//! by `u32` ids. A [`PrimaryMap`] creates ids; a [`SecondaryMap`] attaches data to existing ids.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

/// An id: a `u32` with a type of its own.
pub trait Entity: Copy + Eq + Ord + std::hash::Hash + fmt::Debug {
    /// Makes the id with this index. Ids past `u32::MAX - 1` cannot be made;
    /// they saturate to the reserved last value.
    fn from_index(index: usize) -> Self;
    /// Returns the position of the id in its map.
    fn index(self) -> usize;
}

macro_rules! entity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl Entity for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

entity!(
    /// An instruction of a module.
    InstId,
    "i"
);
entity!(
    /// A computation of a module.
    CompId,
    "c"
);
entity!(
    /// A shape interned in a module.
    ShapeId,
    "s"
);
entity!(
    /// An [`OpMetadata`](crate::OpMetadata) interned in a module.
    MetadataId,
    "m"
);
entity!(
    /// One operand slot of one instruction: a link of a use list.
    UseId,
    "u"
);

/// An optional id in four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packed<K: Entity>(u32, PhantomData<K>);

impl<K: Entity> Packed<K> {
    /// No id.
    pub const NONE: Self = Self(u32::MAX, PhantomData);

    /// Returns the id, if there is one.
    pub fn get(self) -> Option<K> {
        (self.0 != u32::MAX).then(|| K::from_index(self.0 as usize))
    }

    /// Checks whether there is no id.
    pub fn is_none(self) -> bool {
        self.0 == u32::MAX
    }
}

impl<K: Entity> Default for Packed<K> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<K: Entity> From<Option<K>> for Packed<K> {
    fn from(id: Option<K>) -> Self {
        id.map_or(Self::NONE, Self::from)
    }
}

impl<K: Entity> From<K> for Packed<K> {
    fn from(id: K) -> Self {
        Self(u32::try_from(id.index()).unwrap_or(u32::MAX), PhantomData)
    }
}

impl<K: Entity> fmt::Debug for Packed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The owning map of an id type: `push` creates the next id.
///
/// It can record its state and be rolled back to it.
#[derive(Clone, Debug)]
pub struct PrimaryMap<K: Entity, V> {
    values: Vec<V>,
    record: Option<Record<V>>,
    key: PhantomData<K>,
}

/// The state of a map when its record began.
#[derive(Clone, Debug)]
struct Record<V> {
    len: usize,
    /// The old values that may have changed since, by index.
    changed: FxHashMap<usize, V>,
}

impl<K: Entity, V> PrimaryMap<K, V> {
    /// Begins a record for [`Self::roll_back`]; ends any earlier record.
    pub(crate) fn begin_record(&mut self) {
        self.record = Some(Record { len: self.values.len(), changed: FxHashMap::default() });
    }

    /// Ends the record and keeps all changes.
    pub(crate) fn end_record(&mut self) {
        self.record = None;
    }

    /// Ends the record and restores the state in which it began.
    pub(crate) fn roll_back(&mut self) {
        if let Some(Record { len, changed }) = self.record.take() {
            self.values.truncate(len);
            for (index, value) in changed {
                self.values[index] = value;
            }
        }
    }

    /// Returns the ids whose values may have changed since the record began, and new ids, in
    /// order.
    pub(crate) fn recorded(&self) -> Vec<K> {
        let Some(record) = &self.record else { return Vec::new() };
        let mut ids: Vec<usize> = record.changed.keys().copied().collect();
        ids.sort_unstable();
        ids.extend(record.len..self.values.len());
        ids.into_iter().map(K::from_index).collect()
    }
}

impl<K: Entity, V> PrimaryMap<K, V> {
    /// Adds a value and returns its id.
    pub fn push(&mut self, value: V) -> K {
        let id = K::from_index(self.values.len());
        self.values.push(value);
        id
    }

    /// Reserves memory for this many more ids.
    pub fn reserve(&mut self, additional: usize) {
        self.values.reserve(additional);
    }

    /// Returns the number of ids made so far.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Checks whether no id was created yet.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns all ids with their values, in order of creation.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.values.iter().enumerate().map(|(i, v)| (K::from_index(i), v))
    }

    /// Returns all ids, in order of creation.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.values.len()).map(K::from_index)
    }

    /// Returns the values of consecutive ids, given the range of their indices.
    pub fn range(&self, indices: std::ops::Range<usize>) -> &[V] {
        &self.values[indices]
    }

    /// Returns the value of an id if it is in range; the id may come from another map of this
    /// type.
    pub fn get(&self, id: K) -> Option<&V> {
        self.values.get(id.index())
    }
}

impl<K: Entity, V> Default for PrimaryMap<K, V> {
    fn default() -> Self {
        Self { values: Vec::new(), record: None, key: PhantomData }
    }
}

impl<K: Entity, V> Index<K> for PrimaryMap<K, V> {
    type Output = V;
    fn index(&self, id: K) -> &V {
        &self.values[id.index()]
    }
}

impl<K: Entity, V: Clone> IndexMut<K> for PrimaryMap<K, V> {
    fn index_mut(&mut self, id: K) -> &mut V {
        let index = id.index();
        let value = &mut self.values[index];
        if let Some(Record { len, changed }) = &mut self.record
            && index < *len
        {
            changed.entry(index).or_insert_with(|| value.clone());
        }
        value
    }
}

/// Data attached to the ids of a [`PrimaryMap`]; ids without an entry have the default value.
#[derive(Clone, Debug)]
pub struct SecondaryMap<K: Entity, V> {
    values: Vec<V>,
    default: V,
    key: PhantomData<K>,
}

impl<K: Entity, V: Clone + Default> SecondaryMap<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self::with_default(V::default())
    }
}

impl<K: Entity, V: Clone> SecondaryMap<K, V> {
    /// An empty map whose absent entries have the value `default`.
    pub fn with_default(default: V) -> Self {
        Self { values: Vec::new(), default, key: PhantomData }
    }

    /// Reserves memory for the values of this many more ids.
    pub fn reserve(&mut self, additional: usize) {
        self.values.reserve(additional);
    }

    /// Creates the missing values of all ids below `bound`.
    pub fn fill(&mut self, bound: usize) {
        if bound > self.values.len() {
            self.values.resize(bound, self.default.clone());
        }
    }

    /// Sets the value of an id.
    pub fn set(&mut self, id: K, value: V) {
        // Values are mostly set in the order of the ids.
        if id.index() == self.values.len() {
            self.values.push(value);
        } else {
            *self.get_mut(id) = value;
        }
    }

    /// Returns the value of an id; an absent value is created first.
    pub fn get_mut(&mut self, id: K) -> &mut V {
        let index = id.index();
        if index >= self.values.len() {
            self.values.resize(index + 1, self.default.clone());
        }
        &mut self.values[index]
    }
}

impl<K: Entity, V: Clone + Default> Default for SecondaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Entity, V> Index<K> for SecondaryMap<K, V> {
    type Output = V;
    fn index(&self, id: K) -> &V {
        self.values.get(id.index()).unwrap_or(&self.default)
    }
}
