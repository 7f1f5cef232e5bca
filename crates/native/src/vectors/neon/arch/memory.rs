//! Loads and stores.

use std::arch::aarch64 as arch;

use super::{
    __m256i, __m512i, _mm256_set1_epi16, _mm512_mask_mov_epi32, _mm512_mask_mov_epi64, halved,
    lanes_of_bits,
};

/// The first `count` elements, fewer than `N`; zeros are behind them.
///
/// # Safety
/// `count` elements must be readable.
#[inline(always)]
unsafe fn first_of<T: Copy + Default, const N: usize>(from: *const T, count: usize) -> [T; N] {
    let mut room = [T::default(); N];
    let (mut at, to) = (0, room.as_mut_ptr());
    // Parts of a known length are copied by single instructions.
    for part in [8, 4, 2, 1] {
        if count & part != 0 {
            // SAFETY: the caller promises so many elements, fewer than the room has.
            unsafe { to.add(at).copy_from_nonoverlapping(from.add(at), part) };
            at += part;
        }
    }
    room
}

// The lowest bits of each mask are set, and no others.
wide! {
    pub(in crate::vectors::neon) unsafe fn _mm512_loadu_si512(from: *const __m512i) -> __m512i {
        let from = from.cast::<u8>();
        // SAFETY: the caller promises 64 bytes.
        let quarter = |n: usize| unsafe { arch::vreinterpretq_u32_u8(arch::vld1q_u8(from.add(n))) };
        __m512i([quarter(0), quarter(16), quarter(32), quarter(48)])
    }

    pub(in crate::vectors::neon) unsafe fn _mm512_storeu_si512(to: *mut __m512i, a: __m512i) {
        for (n, quarter) in a.0.into_iter().enumerate() {
            // SAFETY: the caller promises 64 bytes.
            unsafe {
                arch::vst1q_u8(to.cast::<u8>().add(16 * n), arch::vreinterpretq_u8_u32(quarter));
            }
        }
    }

    pub(in crate::vectors::neon) unsafe fn _mm512_mask_loadu_epi32(
        others: __m512i,
        mask: u16,
        from: *const u32,
    ) -> __m512i {
        if mask == u16::MAX {
            // SAFETY: the caller promises 16 elements.
            return unsafe { _mm512_loadu_si512(from.cast()) };
        }
        // SAFETY: the caller promises the elements of the mask's bits; the room has 64 bytes.
        unsafe {
            let room = first_of::<_, 16>(from, mask.count_ones() as usize);
            _mm512_mask_mov_epi32(others, mask, _mm512_loadu_si512(room.as_ptr().cast()))
        }
    }

    pub(in crate::vectors::neon) unsafe fn _mm512_mask_loadu_epi64(
        others: __m512i,
        mask: u8,
        from: *const u64,
    ) -> __m512i {
        if mask == u8::MAX {
            // SAFETY: the caller promises eight elements.
            return unsafe { _mm512_loadu_si512(from.cast()) };
        }
        // SAFETY: the caller promises the elements of the mask's bits; the room has 64 bytes.
        unsafe {
            let room = first_of::<_, 8>(from, mask.count_ones() as usize);
            _mm512_mask_mov_epi64(others, mask, _mm512_loadu_si512(room.as_ptr().cast()))
        }
    }

    pub(in crate::vectors::neon) unsafe fn _mm256_loadu_si256(from: *const __m256i) -> __m256i {
        let from = from.cast::<u8>();
        // SAFETY: the caller promises 32 bytes.
        let half = |n: usize| unsafe { arch::vreinterpretq_u16_u8(arch::vld1q_u8(from.add(n))) };
        __m256i(half(0), half(16))
    }

    pub(in crate::vectors::neon) unsafe fn _mm256_storeu_si256(to: *mut __m256i, a: __m256i) {
        let to = to.cast::<u8>();
        // SAFETY: the caller promises 32 bytes.
        unsafe {
            arch::vst1q_u8(to, arch::vreinterpretq_u8_u16(a.0));
            arch::vst1q_u8(to.add(16), arch::vreinterpretq_u8_u16(a.1));
        }
    }

    pub(in crate::vectors::neon) unsafe fn _mm256_maskz_loadu_epi16(
        mask: u16,
        from: *const u16,
    ) -> __m256i {
        // SAFETY: the caller promises the elements of the mask's bits.
        unsafe { _mm256_mask_loadu_epi16(_mm256_set1_epi16(0), mask, from) }
    }

    pub(in crate::vectors::neon) unsafe fn _mm256_mask_loadu_epi16(
        others: __m256i,
        mask: u16,
        from: *const u16,
    ) -> __m256i {
        if mask == u16::MAX {
            // SAFETY: the caller promises 16 elements.
            return unsafe { _mm256_loadu_si256(from.cast()) };
        }
        // SAFETY: the caller promises the elements of the mask's bits; the room has 32 bytes.
        let loaded = unsafe {
            let room = first_of::<_, 16>(from, mask.count_ones() as usize);
            _mm256_loadu_si256(room.as_ptr().cast())
        };
        let lanes = halved(lanes_of_bits(mask));
        let first = arch::vbslq_u16(lanes.0, loaded.0, others.0);
        __m256i(first, arch::vbslq_u16(lanes.1, loaded.1, others.1))
    }
}
