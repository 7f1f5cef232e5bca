//! Stores that go past the caches.

use super::arch;

wide! {
    /// See [`Stream`](crate::vectors::Stream).
    pub(super) unsafe fn stream(from: *const u8, to: *mut u8, lines: usize) {
        // SAFETY: the caller promises the lines, and that none is in both places.
        unsafe {
            for line in 0..lines {
                let bytes = arch::_mm512_loadu_si512(from.add(line * 64).cast());
                arch::_mm512_stream_si512(to.add(line * 64).cast(), bytes);
            }
        }
    }
}
