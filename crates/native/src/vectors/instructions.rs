//! Instructions that the portable vectors lack: fetches ahead, stores past the caches, loads of a part of
//! a vector, products with powers of two, and the comparison that finds NaN in either of two vectors.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _CMP_UNORD_Q, _MM_HINT_T0, _MM_HINT_T1, _mm_loadu_si128, _mm_prefetch, _mm_stream_si128,
    _mm256_cmp_pd, _mm256_cmp_ps, _mm256_mask_loadu_epi16, _mm256_stream_si256, _mm512_cmp_pd_mask,
    _mm512_cmp_ps_mask, _mm512_mask_loadu_epi32, _mm512_mask_loadu_epi64, _mm512_scalef_ps,
    _mm512_stream_si512,
};

use fearless_simd::prelude::*;
#[cfg(target_arch = "x86_64")]
use fearless_simd::{Level, f32x8, f64x4};
use fearless_simd::{f32x16, f64x8, i32x16, u16x16, u32x16};

use super::lanes::{Mask, Vector, chosen, first, first_bits};
use super::{Prefetch, inlined};

/// The bytes of a line of a cache.
const LINE: usize = 64;

/// Fetches memory into the second cache.
#[inline(always)]
fn fetch(from: *const i8) {
    // SAFETY: SSE has the instruction, all x86-64 have SSE, and any address may be fetched.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        _mm_prefetch::<_MM_HINT_T1>(from);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// Fetches what lies so many bytes behind the elements into the first cache.
#[inline(always)]
pub(super) fn fetch_behind<T>(elements: &[T], bytes: usize) {
    let from = elements.as_ptr().cast::<i8>().wrapping_add(bytes);
    for line in (0..size_of_val(elements)).step_by(LINE) {
        // SAFETY: as in `fetch`.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(line));
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = from.wrapping_add(line);
    }
}

/// Fetches `count` elements of both, and goes on.
#[inline(always)]
pub(super) fn fetch_next(prefetch: &mut [Prefetch; 2], count: usize) {
    if prefetch[1].bytes == 0 {
        return;
    }
    for next in prefetch {
        fetch(next.from);
        next.from = next.from.wrapping_add(next.bytes * count);
    }
}

/// Writes a vector past the caches, if the CPU can.
///
/// # Safety
/// The line at `to` must be writable and begin at a boundary of 64 bytes. A [`Fence`](super::Fence) is
/// dropped before other threads learn that it was written.
#[inline(always)]
pub(super) unsafe fn store_past_caches<S: Simd, V: Vector<S>>(vector: V, to: *mut u8) {
    let line = vector.bitcast::<u32x16<S>>();
    // SAFETY: the token proves that this CPU has the instructions, and the caller promises the line.
    unsafe {
        match vector.token().level() {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => _mm512_stream_si512(to.cast(), line.into()),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => {
                let (first, second) = line.split();
                _mm256_stream_si256(to.cast(), first.into());
                _mm256_stream_si256(to.add(LINE / 2).cast(), second.into());
            }
            _ => to.cast::<[u32; 16]>().write(line.to_array()),
        }
    }
}

/// Whether this CPU has stores that go past the caches. Miri does not know them.
pub(crate) const HAS_STORES_PAST_CACHES: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// Copies `lines` lines of a cache past the caches.
///
/// # Safety
/// The lines at `from` must be readable; for those at `to`, as [`store_past_caches`] says. They lie apart.
pub(crate) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..lines * LINE).step_by(16) {
        // SAFETY: all x86-64 have SSE2; the caller promises the lines, and `to` begins at one.
        unsafe {
            let part = _mm_loadu_si128(from.add(at).cast());
            _mm_stream_si128(to.add(at).cast(), part);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller promises the lines.
    unsafe {
        to.copy_from_nonoverlapping(from, lines * LINE);
    }
}

/// Returns `a` times 2 to the power of the whole number `n`, -252 to 254, rounded once.
#[inline(always)]
pub(super) fn times_power_of_two<S: Simd>(a: f32x16<S>, n: f32x16<S>) -> f32x16<S> {
    #[cfg(target_arch = "x86_64")]
    if let Level::Avx512(_) = a.token().level() {
        // SAFETY: the token proves that this CPU has AVX-512.
        return unsafe { _mm512_scalef_ps(a.into(), n.into()) }.simd_into(a.token());
    }
    // The power is two factors, since f32 has no 2^254: the second product alone is rounded.
    let power = inlined(
        #[inline(always)]
        |n: i32x16<S>| ((n + 127) << 23).bitcast::<f32x16<S>>(),
    );
    let n: i32x16<S> = n.to_int();
    let first = n >> 1;
    a * power(first) * power(n - first)
}

/// The lanes in which one of two vectors is NaN.
macro_rules! unordered {
    ($name:ident, $vector:ident, $whole:ident, $half_vector:ident, $half:ident) => {
        #[inline(always)]
        pub(super) fn $name<S: Simd>(a: $vector<S>, b: $vector<S>) -> Mask<S, $vector<S>> {
            let simd = a.token();
            match simd.level() {
                #[cfg(target_arch = "x86_64")]
                Level::Avx512(_) => {
                    // SAFETY: the token proves that this CPU has AVX-512.
                    let bits = unsafe { $whole::<_CMP_UNORD_Q>(a.into(), b.into()) };
                    Mask::<S, $vector<S>>::from_bitmask(simd, bits.into())
                }
                #[cfg(target_arch = "x86_64")]
                Level::Avx2(_) => {
                    let ((a, b), (c, d)) = (a.split(), b.split());
                    // SAFETY: the token proves that this CPU has AVX2.
                    let (first, second) = unsafe {
                        let first = $half::<_CMP_UNORD_Q>(a.into(), c.into());
                        (first, $half::<_CMP_UNORD_Q>(b.into(), d.into()))
                    };
                    let (first, second): ($half_vector<S>, $half_vector<S>) =
                        (first.simd_into(simd), second.simd_into(simd));
                    Mask::<S, $vector<S>>::from_vector(first.combine(second).bitcast())
                }
                _ => a.is_nan() | b.is_nan(),
            }
        }
    };
}

unordered!(unordered_f32, f32x16, _mm512_cmp_ps_mask, f32x8, _mm256_cmp_ps);
unordered!(unordered_f64, f64x8, _mm512_cmp_pd_mask, f64x4, _mm256_cmp_pd);

/// Whether the vectors are AVX-512's: registers hold 16 of them and more, loads have masks, and lanes side by
/// side are moved apart by one instruction. What is decided in a `const` block is not compiled for others.
pub(super) const fn is_avx512<S: Simd>() -> bool {
    <S::f32s as SimdBase<S>>::LEN == 16
}

/// The first `count` elements, at most as many as a vector has, and the other lanes of `others`.
///
/// # Safety
/// There must be so many elements.
#[inline(always)]
pub(super) unsafe fn load_first<S: Simd, V: Vector<S>>(
    simd: S,
    from: &[V::Element],
    count: usize,
    others: V,
) -> V {
    #[cfg(target_arch = "x86_64")]
    if const { is_avx512::<S>() } {
        let (from, bits) = (from.as_ptr(), first_bits(count));
        let others = others.bitcast::<u32x16<S>>().into();
        // SAFETY: the token proves that this CPU has AVX-512, whose vectors alone are so long. The caller
        // promises the elements of the mask's bits, and no others are read.
        let all = unsafe {
            if V::LEN == 8 {
                _mm512_mask_loadu_epi64(others, bits as u8, from.cast())
            } else {
                _mm512_mask_loadu_epi32(others, bits as u16, from.cast())
            }
        };
        return u32x16::simd_from(simd, all).bitcast();
    }
    match from.get(..V::LEN) {
        Some(whole) => chosen(first::<S, V>(simd, count), V::from_slice(simd, whole), others),
        None => {
            let mut room = others.to_array();
            copy(&from[..count], room.as_mut());
            V::load_array(simd, room)
        }
    }
}

/// As [`load_first`], of elements of 16 bits.
///
/// # Safety
/// As that of [`load_first`].
#[inline(always)]
pub(super) unsafe fn first_sixteen<S: Simd>(
    simd: S,
    from: &[u16],
    count: usize,
    other: u16,
) -> u16x16<S> {
    let (others, bits) = (u16x16::splat(simd, other), first_bits(count));
    #[cfg(target_arch = "x86_64")]
    if const { is_avx512::<S>() } {
        // SAFETY: as in `load_first`.
        let all =
            unsafe { _mm256_mask_loadu_epi16(others.into(), bits as u16, from.as_ptr().cast()) };
        return u16x16::simd_from(simd, all);
    }
    match from.get(..16) {
        Some(whole) => {
            let mask = Mask::<S, u16x16<S>>::from_bitmask(simd, bits);
            mask.select(u16x16::from_slice(simd, whole), others)
        }
        None => {
            let mut room = [other; 16];
            copy(&from[..count], &mut room);
            u16x16::load_array(simd, room)
        }
    }
}

/// Copies the last elements of an array.
#[cold]
#[inline(never)]
fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    to[..from.len()].copy_from_slice(from);
}
