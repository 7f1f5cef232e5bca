//! The table of names and their ids.
//!
//! A hash table for one purpose: names are never removed, are mostly used soon after their
//! definition, and can be millions. It keeps the hash of each name in the table, so that
//! growing touches neither names nor text. It keeps the names in the order of their definition,
//! so that nothing depends on hashes.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

/// The least number of slots; a power of two, as all numbers of slots are.
const LEAST: usize = 16;

/// Names with their meaning: `None` if the definition had an error, so that its uses are not
/// reported as well.
#[derive(Debug)]
pub(super) struct Names<'s, Id> {
    entries: Vec<(&'s str, Option<Id>)>,
    /// Hash and index + 1 of an entry; 0 is a free slot. Never more than half
    /// of them are taken.
    slots: Vec<u64>,
}

impl<Id> Default for Names<'_, Id> {
    fn default() -> Self {
        Self { entries: Vec::new(), slots: Vec::new() }
    }
}

/// The entry of a name, or the position of a new one.
enum NameSlot {
    Entry(usize),
    Free(usize),
}

impl<'s, Id: Copy> Names<'s, Id> {
    /// Returns the id of a name.
    #[inline]
    pub(super) fn get(&self, name: &str) -> Option<Option<Id>> {
        match self.find(name, hash(name)) {
            NameSlot::Entry(at) => self.entries.get(at).map(|&(_, id)| id),
            NameSlot::Free(_) => None,
        }
    }

    /// Checks whether the name is defined.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets the meaning of a name and returns the former one.
    #[inline]
    pub(super) fn insert(&mut self, name: &'s str, id: Option<Id>) -> Option<Option<Id>> {
        if self.slots.len() <= 2 * self.entries.len() {
            self.grow();
        }
        let hash = hash(name);
        match self.find(name, hash) {
            NameSlot::Entry(at) => {
                self.entries.get_mut(at).map(|(_, old)| std::mem::replace(old, id))
            }
            NameSlot::Free(slot) => {
                self.entries.push((name, id));
                if let Some(slot) = self.slots.get_mut(slot) {
                    *slot = pack(hash, self.entries.len());
                }
                None
            }
        }
    }

    /// Returns the number of names.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the names, in the order of their definition.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'s str> {
        self.entries.iter().map(|&(name, _)| name)
    }

    /// Forgets all names; `false` if it is cheaper to make a new table.
    pub(super) fn clear(&mut self) -> bool {
        const MOST: usize = 4096;
        let cheap = self.slots.len() <= MOST;
        if cheap {
            self.entries.clear();
            self.slots.fill(0);
        }
        cheap
    }

    fn find(&self, name: &str, hash: u32) -> NameSlot {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = hash as usize & mask;
        loop {
            match self.slots.get(slot) {
                Some(&taken) if taken != 0 => {
                    let at = (taken & u64::from(u32::MAX)) as usize - 1;
                    let same_hash = (taken >> 32) as u32 == hash;
                    if same_hash && self.entries.get(at).is_some_and(|(other, _)| *other == name) {
                        return NameSlot::Entry(at);
                    }
                }
                // A free slot, or no slots at all.
                Some(_) | None => return NameSlot::Free(slot),
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = (2 * self.slots.len()).max(LEAST);
        let old = std::mem::replace(&mut self.slots, vec![0; len]);
        for taken in old.into_iter().filter(|&taken| taken != 0) {
            let mut slot = (taken >> 32) as usize & (len - 1);
            while self.slots.get(slot).is_some_and(|&other| other != 0) {
                slot = (slot + 1) & (len - 1);
            }
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = taken;
            }
        }
    }
}

/// Ids count instructions; there are fewer than 2^32.
fn pack(hash: u32, number: usize) -> u64 {
    u64::from(hash) << 32 | number as u64
}

fn hash(name: &str) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(name.as_bytes());
    // The upper half is the better mixed one.
    (hasher.finish() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_are_found_replaced_and_forgotten() {
        let texts: Vec<String> = (0..10_000).map(|i| format!("name.{i}")).collect();
        let mut names = Names::default();
        assert_eq!(names.get("name.0"), None);
        for (i, text) in texts.iter().enumerate() {
            assert_eq!(names.insert(text, Some(i)), None);
        }
        for (i, text) in texts.iter().enumerate() {
            assert_eq!(names.get(text), Some(Some(i)));
        }
        assert_eq!(names.get("name"), None);
        assert_eq!(names.insert("name.7", None), Some(Some(7)));
        assert_eq!(names.get("name.7"), Some(None));
        assert_eq!(names.len(), 10_000);
        assert!(names.iter().eq(texts.iter().map(String::as_str)));
        assert!(!names.clear(), "too large to be cleared");
        let mut few = Names::default();
        few.insert("a", Some(1));
        assert!(few.clear());
        assert_eq!((few.len(), few.contains("a")), (0, false));
    }
}
