//! Where in a row-major index dims are: what digits of different reshapes have in
//! common.
//!
//! A [`Span`] says of a dim which part of the index it is, whatever the other dims
//! are called, so that dims on both sides of a reshape can be compared.

use tilewright_ir::types::shape::Dims;

/// The part of a row-major index that a dim is: `index / low % (high / low)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The product of the dims after it; at least 1.
    pub low: i64,
    /// `low` times its size.
    pub high: i64,
}

impl Span {
    /// How many values the dim has.
    pub fn size(self) -> i64 {
        self.high / self.low.max(1)
    }

    /// Whether steps along a dim with one span leave the index in a dim with the
    /// other as it is: so always where one has size 1.
    pub fn apart(self, other: Self) -> bool {
        self.size() == 1
            || other.size() == 1
            || self.low % other.high == 0
            || other.low % self.high == 0
    }

    /// Whether it lies within another.
    pub fn within(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }
}

/// The spans of dims of a positive number of elements that an `i64` counts.
pub fn spans(dims: &[i64]) -> Option<Vec<Span>> {
    let mut low = 1;
    let mut spans = vec![Span { low, high: low }; dims.len()];
    for (span, &size) in spans.iter_mut().zip(dims).rev() {
        let high = i64::checked_mul(low, size).filter(|&high| high > 0)?;
        *span = Span { low, high };
        low = high;
    }
    Some(spans)
}

/// Spans without those of size 1, neighbours joined, minor to major.
pub fn joined(spans: impl IntoIterator<Item = Span>) -> Vec<Span> {
    let mut sorted: Vec<Span> = spans.into_iter().filter(|span| span.size() > 1).collect();
    sorted.sort_unstable();
    let mut joined: Vec<Span> = Vec::with_capacity(sorted.len());
    for span in sorted {
        match joined.last_mut() {
            Some(last) if last.high >= span.low => last.high = last.high.max(span.high),
            _ => joined.push(span),
        }
    }
    joined
}

/// A row-major index taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuts {
    /// From 1 to the number of elements, each dividing the next.
    at: Vec<i64>,
}

impl Cuts {
    /// The index of so many elements, at least one, cut at the ends of all these
    /// spans; `None` where an end does not divide the next.
    pub fn of(elements: i64, spans: impl IntoIterator<Item = Span>) -> Option<Self> {
        let mut at = vec![1, elements];
        at.extend(spans.into_iter().flat_map(|span| [span.low, span.high]));
        at.sort_unstable();
        at.dedup();
        at.windows(2).all(|pair| pair[1] % pair[0] == 0).then_some(Self { at })
    }

    /// The pieces between the cuts, major to minor.
    pub fn digits(&self) -> Vec<Span> {
        self.at.windows(2).rev().map(|pair| Span { low: pair[0], high: pair[1] }).collect()
    }
}

/// The sizes of dims with these spans.
pub fn sizes(spans: &[Span]) -> Dims {
    spans.iter().map(|span| span.size()).collect()
}
