//! The pages of memory that results are written to.

use crate::error::Error;

/// Results of at least so many bytes are worth a call of the operating system: one that gives memory
/// anew at each use gives it in pages of 4096 bytes, and each takes a microsecond or two when it is
/// first written, longer than a reduction takes to read it. NumPy has the same limit.
const LEAST_BYTES: usize = 1 << 22;

/// A multiple of the size of pages of all architectures.
#[cfg(all(target_os = "linux", not(miri)))]
const PAGE: usize = 1 << 16;

/// Returns a vector without elements that has room for `len`.
///
/// # Errors
/// If there is no memory for so many.
pub(crate) fn empty<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(|_| Error::TooLarge)?;
    Ok(data)
}

/// Asks Linux for pages of 2 MB where `bytes` bytes from `start` on were not written yet. What they
/// hold stays as it is, and so does all if the system has no such pages to give.
///
/// Source: `madvise(2)`, `MADV_HUGEPAGE`.
pub(crate) fn prefer_huge(start: *mut u8, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if bytes >= LEAST_BYTES {
        let from = start.align_offset(PAGE).min(bytes);
        let whole = (bytes - from) / PAGE * PAGE;
        // SAFETY: these are whole pages within memory of the caller, of which the system changes
        // nothing but how it is to be provided. A refusal changes nothing.
        unsafe { libc::madvise(start.wrapping_add(from).cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (start, bytes, LEAST_BYTES);
}

/// Checks whether memory was written before, by three of its pages. Linux clears a page when it is
/// first written, which leaves it in the caches: stores past these would write it once more. Elsewhere
/// all memory passes for written.
///
/// Source: `mincore(2)`.
pub(crate) fn was_written(start: *mut u8, bytes: usize) -> bool {
    were_written(start, bytes, is_there)
}

/// Whether all of three pages are there, if they are few enough to ask for.
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

/// Checks whether a page is in memory; true where the system does not tell.
fn is_there(page: *mut u8) -> bool {
    let mut state = 1u8;
    // SAFETY: the page is one of the caller's, and its state takes one byte. If the system refuses, the
    // state stays as it is.
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

    /// A large vector of zeros is memory that the system was not asked for yet. Some sandboxes say of all
    /// pages that they are there: who works in one sets the variable.
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

    /// Each of the three pages decides, and all lie within the memory.
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

    /// Memory keeps what it holds, wherever it begins and ends.
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
