//! The memory pages of results: `run/mod.rs` and `fused/run.rs` ask for huge pages before they
//! write, and whether the pages were written before.

use crate::error::Error;

/// Results of at least this many bytes are worth a system call. Fresh memory comes in pages of 4096
/// bytes, and the first write to each page takes a microsecond or two, which is longer than a
/// reduction takes to read as many bytes. NumPy has the same limit.
const LEAST_BYTES: usize = 1 << 22;

/// A multiple of the page size on every architecture.
#[cfg(all(target_os = "linux", not(miri)))]
const PAGE: usize = 1 << 16;

/// Returns an empty vector that has room for `len` elements.
///
/// # Errors
/// If that much memory cannot be allocated.
pub(crate) fn empty<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(|_| Error::TooLarge)?;
    Ok(data)
}

/// Asks Linux for pages of 2 MB where the `bytes` bytes from `start` on were not written yet. The
/// contents stay as they are, and if the system has no such pages, nothing changes.
///
/// Source: `madvise(2)`, `MADV_HUGEPAGE`.
pub(crate) fn prefer_huge(start: *mut u8, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if bytes >= LEAST_BYTES {
        let from = start.align_offset(PAGE).min(bytes);
        let whole = (bytes - from) / PAGE * PAGE;
        // SAFETY: `MADV_HUGEPAGE` changes neither the contents of pages nor the right to use them,
        // whatever the address is; a call that the system refuses changes nothing.
        unsafe { libc::madvise(start.wrapping_add(from).cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (start, bytes, LEAST_BYTES);
}

/// Checks whether the `bytes` bytes from `start` on were written before, by three of their pages.
/// Linux clears a page at its first write and so brings it into the caches; a store past the caches
/// would then write the page to memory a second time. Short memory counts as written, and so does
/// all memory on other systems.
///
/// Source: `mincore(2)`.
pub(crate) fn was_written(start: *mut u8, bytes: usize) -> bool {
    were_written(start, bytes, is_there)
}

/// Checks whether three pages, spread over the memory, are all there; true without a question if
/// the memory has fewer than [`LEAST_BYTES`].
fn were_written(start: *mut u8, bytes: usize, is_there: impl Fn(*mut u8) -> bool) -> bool {
    if bytes < LEAST_BYTES {
        return true;
    }
    let from = start.align_offset(PAGE).min(bytes);
    let eighth = (bytes - from) / 8 / PAGE;
    [1, 4, 7]
        .into_iter()
        .all(|eighths| is_there(start.wrapping_add(from + eighth * eighths * PAGE)))
}

/// Checks whether a page is in memory; true where the system does not say.
fn is_there(page: *mut u8) -> bool {
    let mut state = 1u8;
    // SAFETY: `mincore` reads no memory at `page`, and for a length of 1 it writes one byte,
    // `state`. If the system refuses, `state` stays 1.
    #[cfg(all(target_os = "linux", not(miri)))]
    unsafe {
        libc::mincore(page.cast(), 1, &raw mut state);
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (page, &mut state);
    state & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::{LEAST_BYTES, prefer_huge, was_written, were_written};

    /// The system has not yet provided the pages of a large vector of zeros. Some sandboxes report
    /// all pages as there: set the variable in one of them.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn memory_is_known_by_its_pages() {
        if std::env::var_os("TILEWRIGHT_NO_MINCORE").is_some() {
            return;
        }
        let len = 16 * LEAST_BYTES;
        let mut data = vec![0u8; len];
        assert!(!was_written(data.as_mut_ptr(), len), "or mincore(2) does not tell");
        data[len / 2..].fill(1);
        assert!(!was_written(data.as_mut_ptr(), len), "the first half is missing");
        data.fill(1);
        assert!(was_written(data.as_mut_ptr(), len));
        assert!(was_written(data.as_mut_ptr(), 9), "too little to ask for");
    }

    /// Each of the three pages can make the answer false, and all three lie within the memory.
    #[test]
    fn one_missing_page_is_enough() {
        let len = 16 * LEAST_BYTES;
        let start = std::ptr::without_provenance_mut::<u8>(4096 + 17);
        let asked = std::cell::RefCell::new(Vec::new());
        let ask = |missing: usize| {
            asked.borrow_mut().clear();
            were_written(start, len, |page| {
                asked.borrow_mut().push(page.addr());
                asked.borrow().len() != missing
            })
        };
        assert!(ask(0) && !ask(1) && !ask(2) && !ask(3));
        assert!(ask(4));
        let asked = asked.borrow();
        assert_eq!(asked.len(), 3);
        assert!(asked.iter().all(|page| page % super::PAGE == 0));
        assert!(asked.iter().all(|&page| page >= start.addr() && page < start.addr() + len));
        assert!(asked.is_sorted() && asked[2] > start.addr() + len / 2);
    }

    /// The contents stay the same, wherever the memory begins and ends.
    #[test]
    fn memory_is_left_as_it_is() {
        let mut data: Vec<u8> = (0..3 * LEAST_BYTES).map(|n| (n % 251) as u8).collect();
        for (from, bytes) in [(0, data.len()), (4097, LEAST_BYTES), (11, LEAST_BYTES + 5), (7, 9)] {
            prefer_huge(data[from..].as_mut_ptr(), bytes);
            assert!(data.iter().enumerate().all(|(n, &x)| x == (n % 251) as u8));
        }
        data.fill(7);
        assert!(data.iter().all(|&x| x == 7));
    }
}
