//! What a user can change so that a rewrite becomes possible.

/// What reasons contain, and what helps.
const ADVICE: [(&str, &str); 7] = [
    ("--exact keeps", "leave out --exact, so that sums may be regrouped"),
    ("dynamic dims", "pad the array to a static shape, or take its length out of the expression"),
    (
        "no sharding of the other dims says what it says",
        "divide whole channels or groups over devices, not parts of a group",
    ),
    (
        "control edge",
        "state shardings by constraints at the boundaries of layers, not inside of them",
    ),
    ("row major", "leave layouts to the compiler"),
    (
        "reduces by a computation that is no plain sum",
        "use sums, products, minima and maxima, or several of them side by side",
    ),
    ("float of different precision", "convert operands to one type explicitly"),
];

/// Returns what helps against the reason that a note gives.
pub(super) fn advice(text: &str) -> Option<&'static str> {
    ADVICE.iter().find(|(phrase, _)| text.contains(phrase)).map(|(_, advice)| *advice)
}

/// Returns the reason that a note gives, without the names of instructions, so that equal reasons at
/// several places are one.
pub(super) fn reason(text: &str) -> String {
    let first = text.split("; ").next().unwrap_or_default();
    match first.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        Some((_, rest)) => format!("an instruction{rest}"),
        None => first.to_owned(),
    }
}
