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
    #[cfg(all(target_os = "linux", not(miri)))]
    if bytes >= LEAST_BYTES {
        let from = start.align_offset(PAGE).min(bytes);
        return [1, 4, 7].into_iter().all(|eighths| {
            let page = start.wrapping_add(from + (bytes - from) / 8 / PAGE * eighths * PAGE);
            let mut state = 1u8;
            // SAFETY: the page is one of the caller's, and its state takes one byte. If the system
            // refuses, the state stays as it is.
            unsafe { libc::mincore(page.cast(), 1, &raw mut state) };
            state & 1 == 1
        });
    }
    let _ = (start, bytes, LEAST_BYTES);
    true
}

#[cfg(test)]
mod tests {
    use super::{LEAST_BYTES, prefer_huge, was_written};

    /// A large vector of zeros is memory that the system was not asked for yet.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn memory_is_known_by_its_pages() {
        let len = 16 * LEAST_BYTES;
        let mut data = vec![0u8; len];
        let mut state = 0u8;
        let page = data[len / 2..].as_mut_ptr();
        let page = page.wrapping_add(page.align_offset(super::PAGE));
        // SAFETY: the page is one of the vector's, and its state takes one byte.
        let refused = unsafe { libc::mincore(page.cast(), 1, &raw mut state) } != 0;
        if refused || state & 1 == 1 {
            // Some sandboxes do not tell, and say of all pages that they are there.
            return;
        }
        assert!(!was_written(data.as_mut_ptr(), len));
        data[len / 2..].fill(1);
        assert!(!was_written(data.as_mut_ptr(), len), "the first half is missing");
        data.fill(1);
        assert!(was_written(data.as_mut_ptr(), len));
        assert!(was_written(data.as_mut_ptr(), 9), "too little to ask for");
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
