//! Words for ops that only move or rename elements.

use tilewright_ir::{ArrayShape, InstId, Module, Op};

/// Returns what a transpose, a reshape, a copy or a bitcast does: `swaps dims 1 and 2`. `None` for other ops.
pub fn meaning(module: &Module, id: InstId) -> Option<String> {
    let result = module.array_shape(id)?;
    let operand = module.array_shape(*module.operands(id).first()?)?;
    Some(match module.op(id) {
        Op::Transpose(attrs) => order(&attrs.dimensions),
        Op::Reshape(_) => regrouped(&numbered(operand.dims()), result.dims()),
        Op::Copy => copied(operand, result),
        Op::Bitcast => renamed(operand, result),
        Op::BitcastConvert => format!("reads the same bits as {}", result.element_type),
        _ => return None,
    })
}

/// Returns what a copy does to the order of elements in memory.
fn copied(operand: &ArrayShape, result: &ArrayShape) -> String {
    let [from, to] = [operand, result].map(ArrayShape::layout_or_default);
    if from == to {
        return "copies bytes as they are".to_owned();
    }
    if from.minor_to_major == to.minor_to_major {
        return format!("moves the array from {from} to {to}");
    }
    format!("orders the array in memory as {to} instead of {from}")
}

/// Returns how a bitcast names the bytes of its operand.
fn renamed(operand: &ArrayShape, result: &ArrayShape) -> String {
    if operand.element_type != result.element_type {
        return format!("reads the same bytes as {}", result.element_type);
    }
    // By the order in memory, the bytes are those of a reshape.
    let [from, to] = [operand, result].map(in_memory);
    let to: Vec<i64> = to.into_iter().map(|(_, size)| size).collect();
    if from.iter().map(|(_, size)| size).eq(&to) && operand.layout != result.layout {
        return "names dims of the same bytes in another order".to_owned();
    }
    format!("names the same bytes anew: {}", regrouped(&from, &to))
}

/// Returns the dims of an array, each with its number.
fn numbered(dims: &[i64]) -> Vec<(i64, i64)> {
    (0..).zip(dims.iter().copied()).collect()
}

/// Returns the dims of an array with their numbers, from the slowest-varying in memory to the fastest.
fn in_memory(array: &ArrayShape) -> Vec<(i64, i64)> {
    let dims = numbered(array.dims());
    let layout = array.layout_or_default();
    let dim = |&dim: &u32| usize::try_from(dim).ok().and_then(|dim| dims.get(dim).copied());
    layout.minor_to_major.iter().rev().filter_map(dim).collect()
}

/// Returns what a transpose does whose result has these dims of its operand.
fn order(dims: &[i64]) -> String {
    let sorted = |dims: &[i64]| dims.is_sorted();
    if sorted(dims) {
        return "keeps the order of dims".to_owned();
    }
    let moved: Vec<i64> =
        (0..).zip(dims).filter(|(at, dim)| at != *dim).map(|(at, _)| at).collect();
    if let [a, b] = moved.as_slice() {
        return format!("swaps dims {a} and {b}");
    }
    let without = |dim: i64| dims.iter().copied().filter(|&other| other != dim).collect::<Vec<_>>();
    match (dims.first(), dims.last()) {
        (Some(&first), _) if sorted(&without(first)) => format!("moves dim {first} to the front"),
        (_, Some(&last)) if sorted(&without(last)) => format!("moves dim {last} to the end"),
        _ => format!("orders dims as {}", listed(dims, ",")),
    }
}

/// Returns what a reshape from these dims, each with its number, to those does.
fn regrouped(from: &[(i64, i64)], to: &[i64]) -> String {
    let mut parts: Vec<String> = groups(from, to).iter().filter_map(Group::words).collect();
    let ones = |sizes: &mut dyn Iterator<Item = i64>| sizes.filter(|&size| size == 1).count();
    let [before, after] =
        [ones(&mut from.iter().map(|&(_, size)| size)), ones(&mut to.iter().copied())];
    match before.cmp(&after) {
        std::cmp::Ordering::Less => parts.push("adds dims of size 1".to_owned()),
        std::cmp::Ordering::Greater => parts.push("drops dims of size 1".to_owned()),
        std::cmp::Ordering::Equal if parts.is_empty() => parts.push("keeps its dims".to_owned()),
        std::cmp::Ordering::Equal => {}
    }
    parts.join(", ")
}

/// Dims side by side that have as many elements as those that they become.
#[derive(Default)]
struct Group {
    /// The numbers of the operand's dims.
    from: Vec<i64>,
    /// The sizes of the result's dims.
    to: Vec<i64>,
}

impl Group {
    fn words(&self) -> Option<String> {
        let Self { from, to } = self;
        Some(match (from.as_slice(), to.len()) {
            ([_], 1) => return None,
            ([dim], _) => format!("splits dim {dim} into {}", listed(to, " x ")),
            (_, 1) => format!("merges dims {}", listed(from, ", ")),
            _ => format!("regroups dims {} into {}", listed(from, ", "), listed(to, " x ")),
        })
    }
}

/// Cuts dims into the smallest groups, without dims of size 1. Dims that are unknown or empty end up in the last.
fn groups(from: &[(i64, i64)], to: &[i64]) -> Vec<Group> {
    let mut left = from.iter().copied().filter(|&(_, size)| size != 1).peekable();
    let mut right = to.iter().copied().filter(|&size| size != 1).peekable();
    let mut groups = Vec::new();
    while left.peek().is_some() || right.peek().is_some() {
        let (mut group, mut have, mut need) = (Group::default(), 1i64, 1i64);
        loop {
            let takes_left = have <= need && left.peek().is_some() || right.peek().is_none();
            if takes_left {
                let Some((dim, size)) = left.next() else { break };
                group.from.push(dim);
                have = have.saturating_mul(size);
            } else {
                let Some(size) = right.next() else { break };
                group.to.push(size);
                need = need.saturating_mul(size);
            }
            if have == need && have > 0 {
                break;
            }
        }
        groups.push(group);
    }
    groups
}

fn listed(numbers: &[i64], between: &str) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::{numbered, order};

    fn regrouped(from: &[i64], to: &[i64]) -> String {
        super::regrouped(&numbered(from), to)
    }

    #[test]
    fn transposes_are_told_by_what_moves() {
        assert_eq!(order(&[0, 1]), "keeps the order of dims");
        assert_eq!(order(&[0, 2, 1]), "swaps dims 1 and 2");
        assert_eq!(order(&[3, 1, 2, 0]), "swaps dims 0 and 3");
        assert_eq!(order(&[2, 0, 1]), "moves dim 2 to the front");
        assert_eq!(order(&[0, 2, 3, 1]), "moves dim 1 to the end");
        assert_eq!(order(&[1, 2, 0]), "moves dim 0 to the end");
        assert_eq!(order(&[1, 0, 3, 2]), "orders dims as 1,0,3,2");
    }

    #[test]
    fn reshapes_are_told_by_groups_of_dims() {
        assert_eq!(regrouped(&[8, 320], &[8, 32, 10]), "splits dim 1 into 32 x 10");
        assert_eq!(regrouped(&[8, 4, 4, 3], &[8, 16, 3]), "merges dims 1, 2");
        assert_eq!(regrouped(&[6, 4], &[4, 6]), "regroups dims 0, 1 into 4 x 6");
        assert_eq!(regrouped(&[2, 3, 4], &[6, 2, 2]), "merges dims 0, 1, splits dim 2 into 2 x 2");
        assert_eq!(regrouped(&[1, 8], &[8]), "drops dims of size 1");
        assert_eq!(regrouped(&[8], &[8, 1]), "adds dims of size 1");
        assert_eq!(regrouped(&[1, 8], &[8, 1]), "keeps its dims");
        assert_eq!(regrouped(&[0, 3], &[3, 0]), "regroups dims 0, 1 into 3 x 0");
        assert_eq!(regrouped(&[], &[]), "keeps its dims");
        assert_eq!(regrouped(&[i64::MAX, 2, 3], &[i64::MAX, 6]), "merges dims 1, 2");
    }
}
