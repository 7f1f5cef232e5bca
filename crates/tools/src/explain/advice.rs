//! What a user can change so that a rewrite becomes possible.

use tilewright::Reason;

/// Returns what helps against a reason, if anything is known to.
pub(super) fn advice(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::Order | Reason::OrderOfNans => "leave out --exact, so that sums may be regrouped",
        Reason::DynamicDims => {
            "pad the array to a static shape, or take its length out of the expression"
        }
        Reason::Constraint => "divide whole channels or groups over devices, not parts of a group",
        Reason::Attached => {
            "state shardings by constraints at the boundaries of layers, not inside of them"
        }
        Reason::Layout => "leave layouts to the compiler",
        Reason::Reducer => "use sums, products, minima and maxima, or several of them side by side",
        Reason::MixedPrecision => "convert operands to one type explicitly",
        _ => return None,
    })
}
