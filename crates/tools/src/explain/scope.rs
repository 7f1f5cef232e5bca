//! The layer of a model that an instruction belongs to, from the name that the framework gave it.

/// Transformations of JAX that are written around a name: `jvp(UNet)`.
const AROUND: [&str; 8] =
    ["jit", "jvp", "transpose", "vmap", "pmap", "remat", "checkpoint", "custom_vjp"];

/// Parts of names that say how a function is called, not which.
const CALLS: [&str; 8] = [
    "checkpoint",
    "remat",
    "rematted_computation",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "pjit",
];

/// The most characters of a name that are looked at.
const MOST_CHARACTERS: usize = 4096;

/// Returns the scope of an instruction with this name, so that the forward and the backward part of a
/// layer have the same: `jit(step)/transpose(jvp(UNet))/jvp(UNet)/checkpoint/Norm_1/reduce_sum`
/// becomes `UNet/Norm_1`. What has no scope but the function that is compiled belongs to this one; empty
/// if there is none.
///
/// The last part of a name is the op. Functions whose names begin with `_` are helpers of libraries,
/// and belong to what calls them.
pub(super) fn scope(op_name: &str) -> String {
    let end = op_name.char_indices().nth(MOST_CHARACTERS).map_or(op_name.len(), |(end, _)| end);
    let mut parts = parts(op_name.get(..end).unwrap_or_default());
    parts.pop();
    let compiled =
        parts.first().filter(|part| part.starts_with("jit(")).map(|part| unwrapped(part));
    let mut scope: Vec<&str> = Vec::new();
    for (place, part) in parts.into_iter().enumerate() {
        let name = unwrapped(part);
        let is_compiled = place == 0 && compiled.is_some();
        let is_helper = part.contains("jit(_");
        let says_nothing = name.is_empty() || CALLS.contains(&name) || scope.last() == Some(&name);
        if !is_compiled && !is_helper && !says_nothing {
            scope.push(name);
        }
    }
    match compiled {
        Some(compiled) if scope.is_empty() => compiled.to_owned(),
        _ => scope.join("/"),
    }
}

/// Splits a name at slashes outside of parentheses.
fn parts(name: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'(' => depth = depth.saturating_add(1),
            b')' => depth = depth.saturating_sub(1),
            b'/' if depth == 0 => {
                parts.extend(name.get(start..at));
                start = at.saturating_add(1);
            }
            _ => {}
        }
    }
    parts.extend(name.get(start..));
    parts
}

/// Returns a part of a name without the transformations around it.
fn unwrapped(mut part: &str) -> &str {
    loop {
        let inner = part.split_once('(').and_then(|(around, rest)| {
            AROUND.contains(&around).then(|| rest.strip_suffix(')')).flatten()
        });
        match inner {
            Some(inner) => part = inner,
            None => return part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::scope;

    #[test]
    fn forward_and_backward_parts_of_a_layer_have_one_scope() {
        let names = [
            "jit(step)/jvp(UNet)/Block_3/GroupNorm_1/square",
            "jit(step)/transpose(jvp(UNet))/jvp(UNet)/checkpoint/Block_3/GroupNorm_1/add_any",
            "jit(step)/transpose(jvp(UNet))/jvp(UNet)/checkpoint/rematted_computation/Block_3/GroupNorm_1/mul",
        ];
        for name in names {
            assert_eq!(scope(name), "UNet/Block_3/GroupNorm_1", "{name}");
        }
    }

    #[test]
    fn helpers_belong_to_what_calls_them() {
        assert_eq!(scope("jit(f)/layer1/jit(norm)/jit(_var)/div"), "layer1/norm");
        assert_eq!(scope("jit(f)/vmap(jit(norm))/div"), "norm");
        assert_eq!(scope("jit(f)/jvp()/gt"), "f");
        assert_eq!(scope("jit(f)/add"), "f");
        assert_eq!(scope("add"), "");
        assert_eq!(scope(""), "");
    }

    #[test]
    fn odd_names_are_taken_as_they_are() {
        assert_eq!(scope("a/b(c/d)/e"), "a/b(c/d)");
        assert_eq!(scope("a/jvp(b/e"), "a");
        assert_eq!(scope("a//b)/é(/c"), "a/b)");
        let deep = format!("{}x{}/op", "jvp(".repeat(5000), ")".repeat(5000));
        assert!(scope(&deep).len() <= 5000);
    }
}
