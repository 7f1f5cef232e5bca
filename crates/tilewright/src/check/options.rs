//! The options of a comparison.

use tilewright_interp::{Devices, Inexact, InputKind, Limits, Progress, Tolerance};
use tilewright_ir::{ElementType, Literal};

/// The options of a comparison. Begin with the default and set what differs:
///
/// ```
/// let how = tilewright::CheckOptions::default().with_exact(true).with_seeds(1);
/// assert!(how.exact);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CheckOptions<'a> {
    /// The seed of the first inputs of each kind; later inputs use the next seeds.
    pub first_seed: u64,
    /// Number of inputs of each kind.
    pub seeds: u64,
    /// Whether values must be equal: floats must be rounded in the same way, and infinities, NaN
    /// and sums that overflow are tried too. Otherwise floats may differ by the rounding error
    /// of sums in another order, and by the first module's sensitivity to rounding: if its
    /// result changes on inputs that differ in the last place, the second module's result may
    /// differ as much.
    pub exact: bool,
    /// The limits of one evaluation.
    pub limits: Limits,
    /// The devices on which both run; if `None`, those in their headers, or a single one if the
    /// results of both are the same on all devices.
    pub devices: Option<Devices>,
    /// The arrays that each device's infeed instructions read, in order, in
    /// every evaluation.
    pub infeed: &'a [Literal],
    /// The inputs of each device, or one list for all devices; they replace random inputs.
    pub inputs: Option<&'a [Vec<Literal>]>,
    /// The tolerance of each float; replaces the one that follows from rounding.
    pub within: Option<Within>,
    /// The progress of the first and of the second module's evaluations, for another thread.
    pub progress: Option<[&'a Progress; 2]>,
}

/// A tolerance for each float.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Within {
    /// A fraction of the first module's element.
    pub relative: f64,
    /// An absolute tolerance, added to the relative one.
    pub absolute: f64,
}

impl Default for CheckOptions<'_> {
    fn default() -> Self {
        Self {
            first_seed: 0,
            seeds: 2,
            exact: false,
            limits: Limits::default(),
            devices: None,
            infeed: &[],
            inputs: None,
            within: None,
            progress: None,
        }
    }
}

impl<'a> CheckOptions<'a> {
    /// With another first seed.
    #[must_use]
    pub fn with_first_seed(self, first_seed: u64) -> Self {
        Self { first_seed, ..self }
    }

    /// With another number of inputs of each kind.
    #[must_use]
    pub fn with_seeds(self, seeds: u64) -> Self {
        Self { seeds, ..self }
    }

    /// With values that must be equal, or may differ by rounding.
    #[must_use]
    pub fn with_exact(self, exact: bool) -> Self {
        Self { exact, ..self }
    }

    /// With other limits of one evaluation.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// With the devices on which both run.
    #[must_use]
    pub fn with_devices(self, devices: Devices) -> Self {
        Self { devices: Some(devices), ..self }
    }

    /// With arrays for infeed instructions.
    #[must_use]
    pub fn with_infeed(self, infeed: &'a [Literal]) -> Self {
        Self { infeed, ..self }
    }

    /// With these inputs in place of random ones: one list for each device, or one for all.
    #[must_use]
    pub fn with_inputs(self, inputs: &'a [Vec<Literal>]) -> Self {
        Self { inputs: Some(inputs), ..self }
    }

    /// With another tolerance of floats.
    #[must_use]
    pub fn with_tolerance(self, within: Within) -> Self {
        Self { within: Some(within), ..self }
    }

    /// With the progress of the first and of the second module's evaluations.
    #[must_use]
    pub fn with_progress(self, progress: [&'a Progress; 2]) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// Returns the kinds of inputs that are tried.
    pub(super) fn kinds(&self) -> impl Iterator<Item = InputKind> {
        // Sums in another order may overflow where the first module's sums do not.
        let exact = self.exact;
        let all = InputKind::ALL.iter().copied();
        all.filter(move |&kind| exact || kind != InputKind::NonFinite)
    }

    /// Returns the tolerance. Without `exact`, floats may differ by the rounding error of
    /// values as large as the output's largest magnitude; by less if inputs contain numbers of
    /// all sizes.
    pub(crate) fn tolerance(
        &self,
        kind: InputKind,
        element_type: ElementType,
        inexact: Inexact,
    ) -> Tolerance {
        let lax = Tolerance::after(element_type, inexact);
        if let Some(Within { relative, absolute }) = self.within {
            let is_exact = lax == Tolerance::EXACT;
            let within = Tolerance { of_element: relative, absolute, ..Tolerance::EXACT };
            return if is_exact || self.exact { Tolerance::EXACT } else { within };
        }
        let relative = match kind {
            _ if self.exact => return Tolerance::EXACT,
            InputKind::Edges | InputKind::NonFinite => lax.relative / 16.0,
            InputKind::Normal
            | InputKind::Offset
            | InputKind::Uniform
            | InputKind::Ties
            | InputKind::Small
            | InputKind::Far
            | InputKind::Positive => lax.relative,
        };
        // An output has no least magnitude: what cancels to almost nothing is excused by the error
        // that the first module has there itself.
        Tolerance { relative, floor: 0.0, ..lax }
    }
}
