//! Sums of products of factors, and of one factor beside.

use super::arch;
use super::arch::__m512i;
use super::blocks::{combine_first, fetch_next};
use super::first;
use super::rows::merged;
use super::terms::Terms;
use crate::kernel::{BLOCKS_PER_STEP, LONG_ROW};
use crate::vectors::{FACTORED, Factors, Prefetch};

/// The operands that there are, or have rows, as bits: none; or all, which change nothing if they are
/// missing, and rows as the factors say.
const NONE: u8 = 0;
const AS_SAID: u8 = u8::MAX;
/// The first factor is multiplied by elements of a row, such as the scale of a layer norm.
const FACTOR: u8 = 1 << 1;
/// The second factor is `(y - 3) * 4`, such as elements that were normalized.
const NORMED: u8 = 1 << 3 | 1 << 4;
/// The number of the operand that the first factor is multiplied by for its own sum.
const FACTOR_SUM_OPERAND: usize = 6;

/// The most elements of blocks that are added vector by vector.
const MOST_COLUMNS: usize = 256;

/// The vectors of a row, or of a block, that are added to accumulators of their own.
type Sums<const VECTORS: usize> = [[__m512i; VECTORS]; 2];

/// Where the operands of a row are, each repeated if it has one element.
struct Row<T> {
    x: *const T,
    y: *const T,
    operands: [*const T; FACTORED],
    ones: [__m512i; FACTORED],
}

/// Checks whether all blocks have the same operands, and are short: long ones would lie in one set of a
/// cache.
fn is_by_columns<L: Terms>(factors: &Factors<L::Element>) -> bool {
    let is_short = factors.len <= MOST_COLUMNS && factors.len.is_multiple_of(L::COUNT);
    is_short && factors.operands.iter().all(|(_, apart)| *apart == 0)
}

wide! {
    /// The operands of a row by its number, where `present` has bits for those that there are.
    unsafe fn row_of<L: Terms>(factors: &Factors<L::Element>, row: usize, present: u8) -> Row<L::Element> {
        let mut operands = [std::ptr::null(); FACTORED];
        let mut ones = [arch::_mm512_setzero_si512(); FACTORED];
        for n in 0..FACTORED {
            if present >> n & 1 == 1 {
                let (from, apart) = factors.operands[n];
                operands[n] = from.wrapping_add(row * apart);
                // SAFETY: the caller promises the level and the operands.
                ones[n] = unsafe { L::repeated(*operands[n]) };
            }
        }
        let at = row * factors.len;
        Row { x: factors.x.wrapping_add(at), y: factors.y.wrapping_add(at), operands, ones }
    }

    /// The product of two factors, and what is added up beside; lanes that are not in `mask` are 0.
    unsafe fn terms<L: Terms, const PRESENT: u8>(
        [x, y]: [__m512i; 2],
        operands: &[__m512i; FACTORED],
        mask: u16,
    ) -> [__m512i; 2] {
        // SAFETY: the caller promises the level.
        unsafe {
            let factor = |mut x: __m512i, from: usize| {
                if PRESENT >> from & 1 == 1 {
                    x = L::difference(x, operands[from]);
                }
                for n in from + 1..from + 3 {
                    if PRESENT >> n & 1 == 1 {
                        x = L::product(x, operands[n], u16::MAX);
                    }
                }
                x
            };
            let (x, y) = (factor(x, 0), factor(y, 3));
            // Lanes that were not read may have become anything by then.
            let has_factor_sum = PRESENT >> FACTOR_SUM_OPERAND & 1 == 1;
            let factor_term =
                if has_factor_sum { L::product(x, operands[FACTOR_SUM_OPERAND], mask) } else { x };
            [L::product(x, y, mask), factor_term]
        }
    }

    /// The elements of a vector, those in `mask` if it is no `WHOLE` vector.
    unsafe fn loaded<L: Terms, const WHOLE: bool>(from: *const L::Element, mask: u16) -> __m512i {
        // SAFETY: the caller promises the level and the elements.
        unsafe { if WHOLE { L::load(from) } else { L::load_first(from, mask) } }
    }

    /// The terms at a place of a row.
    unsafe fn terms_at<L: Terms, const PRESENT: u8, const ROWS: u8, const WHOLE: bool>(
        row: &Row<L::Element>,
        (at, mask): (usize, u16),
        per_element: u8,
    ) -> [__m512i; 2] {
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let mut operands = row.ones;
            for n in 0..FACTORED {
                if (PRESENT & ROWS & per_element) >> n & 1 == 1 {
                    operands[n] = loaded::<L, WHOLE>(row.operands[n].add(at), mask);
                }
            }
            let x = loaded::<L, WHOLE>(row.x.add(at), mask);
            let y = loaded::<L, WHOLE>(row.y.add(at), mask);
            terms::<L, PRESENT>([x, y], &operands, mask)
        }
    }

    /// Adds up the products of a row, and the first factor beside, in the order of [`values`](super::rows).
    unsafe fn sums_of_row<L: Terms, const VECTORS: usize, const PRESENT: u8, const ROWS: u8>(
        row: &Row<L::Element>,
        (len, per_element): (usize, u8),
        prefetch: &mut [Prefetch; 2],
    ) -> Sums<VECTORS> {
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let (mut all, mut from) = ([[L::start(); VECTORS]; 2], 0);
            while from + VECTORS * L::COUNT <= len {
                for n in 0..VECTORS {
                    fetch_next(prefetch, L::COUNT);
                    let at = (from + n * L::COUNT, u16::MAX);
                    let [product, factor_term] = terms_at::<L, PRESENT, ROWS, true>(row, at, per_element);
                    all[0][n] = L::combine(all[0][n], product);
                    all[1][n] = L::combine(all[1][n], factor_term);
                }
                from += VECTORS * L::COUNT;
            }
            for n in 0..VECTORS {
                if from < len {
                    let at = (from, first(len - from));
                    let [product, factor_term] = terms_at::<L, PRESENT, ROWS, false>(row, at, per_element);
                    all[0][n] = L::combine(all[0][n], product);
                    all[1][n] = L::combine(all[1][n], factor_term);
                    from += L::COUNT;
                }
            }
            all
        }
    }

    unsafe fn sums_of_rows<L: Terms, const PRESENT: u8, const ROWS: u8>(
        factors: &Factors<L::Element>,
        to: &mut [L::Accumulator],
        mut factor_sum: Option<&mut [L::Accumulator]>,
    ) {
        let (len, per_element, mut prefetch) = (factors.len, factors.per_element, factors.prefetch);
        for (number, to) in to.iter_mut().enumerate() {
            // SAFETY: the caller promises the level, and a row of elements for each sum.
            unsafe {
                let row = row_of::<L>(factors, number, PRESENT);
                let [product, other] = if len > LONG_ROW {
                    let sums = sums_of_row::<L, 4, PRESENT, ROWS>(&row, (len, per_element), &mut prefetch);
                    let merged = |[a, b, c, d]: [__m512i; 4]| {
                        L::combine(L::combine(a, c), L::combine(b, d))
                    };
                    [merged(sums[0]), merged(sums[1])]
                } else {
                    let [[product], [other]] =
                        sums_of_row::<L, 1, PRESENT, ROWS>(&row, (len, per_element), &mut prefetch);
                    [product, other]
                };
                *to = merged::<L>(product);
                if let Some(factor_sum) = factor_sum.as_mut().and_then(|sums| sums.get_mut(number)) {
                    *factor_sum = merged::<L>(other);
                }
            }
        }
    }

    /// Adds up `VECTORS` vectors of some blocks, those in `mask` if it is one that is not whole.
    unsafe fn add_strip<L: Terms, const VECTORS: usize, const PRESENT: u8, const ROWS: u8>(
        rows: &[Row<L::Element>],
        (at, mask): (usize, u16),
        per_element: u8,
        prefetch: &mut [Prefetch; 2],
    ) -> Sums<VECTORS> {
        // SAFETY: the caller promises the level.
        let mut all = unsafe { [[L::start(); VECTORS]; 2] };
        for row in rows {
            for n in 0..VECTORS {
                fetch_next(prefetch, L::COUNT);
                let at = (at + n * L::COUNT, mask);
                // SAFETY: the caller promises the level and the elements.
                unsafe {
                    let [product, factor_term] = if mask == u16::MAX {
                        terms_at::<L, PRESENT, ROWS, true>(row, at, per_element)
                    } else {
                        terms_at::<L, PRESENT, ROWS, false>(row, at, per_element)
                    };
                    all[0][n] = L::combine(all[0][n], product);
                    all[1][n] = L::combine(all[1][n], factor_term);
                }
            }
        }
        all
    }

    /// Adds up to [`BLOCKS_PER_STEP`] blocks.
    unsafe fn add_together<L: Terms, const PRESENT: u8, const ROWS: u8>(
        rows: &[Row<L::Element>],
        (per_element, prefetch): (u8, &mut [Prefetch; 2]),
        to: &mut [L::Accumulator],
        mut factor_sum: Option<&mut [L::Accumulator]>,
    ) {
        let len = to.len();
        let mut at = 0;
        macro_rules! strips {
            ($vectors:literal) => {
                while at + $vectors * L::COUNT <= len {
                    // SAFETY: the caller promises the level and the elements; there are accumulators for
                    // these vectors.
                    unsafe {
                        let sums =
                            add_strip::<L, $vectors, PRESENT, ROWS>(
                                rows, (at, u16::MAX), per_element, prefetch,
                            );
                        for n in 0..$vectors {
                            let at = at + n * L::COUNT;
                            let add = |to: &mut [L::Accumulator], sum| {
                                let to = to[at..at + L::COUNT].as_mut_ptr();
                                L::store(L::combine(L::load_accumulators(to), sum), to);
                            };
                            add(&mut *to, sums[0][n]);
                            if let Some(factor_sum) = &mut factor_sum {
                                add(&mut **factor_sum, sums[1][n]);
                            }
                        }
                    }
                    at += $vectors * L::COUNT;
                }
            };
        }
        if arch::REGISTERS >= 32 {
            strips!(4);
        }
        strips!(1);
        if at < len {
            let mask = first(len - at);
            // SAFETY: as above; the vector is a part.
            unsafe {
                let [[product], [other]] =
                    add_strip::<L, 1, PRESENT, ROWS>(rows, (at, mask), per_element, prefetch);
                combine_first::<L>(product, &mut to[at..]);
                if let Some(factor_sum) = factor_sum {
                    combine_first::<L>(other, &mut factor_sum[at..]);
                }
            }
        }
    }

    unsafe fn sums_of_blocks<L: Terms, const PRESENT: u8, const ROWS: u8>(
        factors: &Factors<L::Element>,
        to: &mut [L::Accumulator],
        mut factor_sum: Option<&mut [L::Accumulator]>,
    ) {
        let (mut done, mut prefetch) = (0, factors.prefetch);
        while done < factors.rows {
            let together = if factors.rows - done < BLOCKS_PER_STEP { 1 } else { BLOCKS_PER_STEP };
            // SAFETY: the caller promises the level and the elements of all blocks.
            unsafe {
                let row = |n: usize| row_of::<L>(factors, done + if n < together { n } else { 0 }, PRESENT);
                let rows = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
                let factor_sum = factor_sum.as_deref_mut();
                let how = (factors.per_element, &mut prefetch);
                add_together::<L, PRESENT, ROWS>(&rows[..together], how, to, factor_sum);
            }
            done += together;
        }
    }

    /// As [`sums_of_blocks`] where all blocks have the same operands, which are loaded once for all.
    unsafe fn sums_of_columns<L: Terms, const PRESENT: u8>(
        factors: &Factors<L::Element>,
        to: &mut [L::Accumulator],
        factor_sum: Option<&mut [L::Accumulator]>,
    ) {
        // SAFETY: the caller promises the level and the elements.
        unsafe {
            let (row, mut prefetch) = (row_of::<L>(factors, 0, PRESENT), factors.prefetch);
            let factor_sum = factor_sum.map(|factor_sum| factor_sum.as_mut_ptr());
            for at in (0..factors.len).step_by(L::COUNT) {
                let mut operands = row.ones;
                for n in 0..FACTORED {
                    if (PRESENT & factors.per_element) >> n & 1 == 1 {
                        operands[n] = L::load(row.operands[n].add(at));
                    }
                }
                let to = to[at..at + L::COUNT].as_mut_ptr();
                let factor_sum = factor_sum.map(|factor_sum| factor_sum.add(at));
                let mut sums = [L::load_accumulators(to), L::start()];
                if let Some(factor_sum) = factor_sum {
                    sums[1] = L::load_accumulators(factor_sum);
                }
                let (x, y) = (row.x.add(at), row.y.add(at));
                let mut done = 0;
                while done < factors.rows {
                    let together = if factors.rows - done < BLOCKS_PER_STEP { 1 } else { BLOCKS_PER_STEP };
                    let mut all = [L::start(); 2];
                    for block in done..done + together {
                        fetch_next(&mut prefetch, L::COUNT);
                        let at = block * factors.len;
                        let xy = [L::load(x.add(at)), L::load(y.add(at))];
                        let terms = terms::<L, PRESENT>(xy, &operands, u16::MAX);
                        all = [L::combine(all[0], terms[0]), L::combine(all[1], terms[1])];
                    }
                    sums = [L::combine(sums[0], all[0]), L::combine(sums[1], all[1])];
                    done += together;
                }
                L::store(sums[0], to);
                if let Some(factor_sum) = factor_sum {
                    L::store(sums[1], factor_sum);
                }
            }
        }
    }

    /// See [`ProductFns::rows`](crate::vectors::ProductFns).
    pub(super) unsafe fn products_of_rows<L: Terms>(
        factors: &Factors<L::Element>,
        to: &mut [L::Accumulator],
        factor_sum: Option<&mut [L::Accumulator]>,
    ) {
        // SAFETY: the caller promises the same.
        unsafe {
            match (factors.present, factors.per_element) {
                (NONE, _) => sums_of_rows::<L, NONE, NONE>(factors, to, factor_sum),
                (NORMED, NONE) => sums_of_rows::<L, NORMED, NONE>(factors, to, factor_sum),
                (_, NONE) => sums_of_rows::<L, AS_SAID, NONE>(factors, to, factor_sum),
                (_, FACTOR) => sums_of_rows::<L, AS_SAID, FACTOR>(factors, to, factor_sum),
                _ => sums_of_rows::<L, AS_SAID, AS_SAID>(factors, to, factor_sum),
            }
        }
    }

    /// See [`ProductFns::blocks`](crate::vectors::ProductFns).
    pub(super) unsafe fn products_of_blocks<L: Terms>(
        factors: &Factors<L::Element>,
        to: &mut [L::Accumulator],
        factor_sum: Option<&mut [L::Accumulator]>,
    ) {
        // SAFETY: the caller promises the same.
        unsafe {
            match (factors.present, factors.per_element) {
                (NONE, _) => sums_of_blocks::<L, NONE, NONE>(factors, to, factor_sum),
                _ if is_by_columns::<L>(factors) => sums_of_columns::<L, AS_SAID>(factors, to, factor_sum),
                (NORMED, NONE) => sums_of_blocks::<L, NORMED, NONE>(factors, to, factor_sum),
                (_, NONE) => sums_of_blocks::<L, AS_SAID, NONE>(factors, to, factor_sum),
                _ => sums_of_blocks::<L, AS_SAID, AS_SAID>(factors, to, factor_sum),
            }
        }
    }
}
