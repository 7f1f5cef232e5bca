//! The pages of memory that results are written to.

/// Results of at least so many bytes are worth a call of the operating system: one that gives memory
/// anew at each use gives it in pages of 4096 bytes, and each takes a microsecond or two when it is
/// first written, longer than a reduction takes to read it. NumPy has the same limit.
const LEAST_BYTES: usize = 1 << 22;

/// Asks Linux for pages of 2 MB where `bytes` bytes from `start` on were not written yet. What they
/// hold stays as it is, and so does all if the system has no such pages to give.
///
/// Source: `madvise(2)`, `MADV_HUGEPAGE`.
pub(crate) fn prefer_huge(start: *mut u8, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if bytes >= LEAST_BYTES {
        /// A multiple of the size of pages of all architectures.
        const PAGE: usize = 1 << 16;
        let from = start.align_offset(PAGE).min(bytes);
        let whole = (bytes - from) / PAGE * PAGE;
        // SAFETY: these are whole pages within memory of the caller, of which the system changes
        // nothing but how it is to be provided. A refusal changes nothing.
        unsafe { libc::madvise(start.wrapping_add(from).cast(), whole, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (start, bytes, LEAST_BYTES);
}

#[cfg(test)]
mod tests {
    use super::{LEAST_BYTES, prefer_huge};

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
