//! The measured times of norms' gradients, as an engine compiles them and by one kernel of this CPU.

use serde::{Deserialize, Serialize};

/// The time of a kind of program: several reductions along rows, and one along columns of what is made of
/// their results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramTime {
    /// The fewest reductions along rows.
    pub reductions: usize,
    /// The least and the greatest length of rows, in elements.
    pub rows: [usize; 2],
    /// The fewest bytes that whole arrays take together.
    pub least_bytes: f64,
    /// The nanoseconds per element of what the engine compiles.
    pub compiled: f64,
    /// The nanoseconds per element of one call.
    pub kernel: f64,
}

impl ProgramTime {
    /// Checks whether it is the time of a program with so many reductions along rows of so many elements,
    /// whose whole arrays take so many bytes together.
    pub fn fits(&self, reductions: usize, row: usize, bytes: f64) -> bool {
        let [least, most] = self.rows;
        reductions >= self.reductions && (least..=most).contains(&row) && bytes >= self.least_bytes
    }

    /// Returns what is wrong with a list of times, as the end of a sentence.
    pub(crate) fn fault(times: &[Self]) -> Option<String> {
        let is_time = |ns: f64| (1e-6..=1e9).contains(&ns);
        let good = |time: &Self| {
            is_time(time.compiled)
                && is_time(time.kernel)
                && (0.0..=1e18).contains(&time.least_bytes)
        };
        (!times.iter().all(good)).then(|| {
            "has a program whose `compiled` or `kernel` is no time in nanoseconds, or whose `least_bytes` \
             is no number of bytes"
                .to_owned()
        })
    }
}
