//! Explanations of optimisations, layer by layer.

use tilewright::{FloatMode, Options};
use tilewright_tools::explain::Explanation;

/// Two group norms of different sizes, the forward part of one and the backward part of the other
/// under names as JAX writes them.
const LAYERS: &str = r#"
HloModule two_layers

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,32,32,32] parameter(0)
  y = f32[8,64,64,32] parameter(1)
  zero = f32[] constant(0)
  g = f32[8,32,32,8,4] reshape(x), metadata={op_name="jit(step)/jvp(Net)/Block_0/GroupNorm_0/reshape" source_file="/home/me/net.py" source_line=7}
  s = f32[8,8] reduce(g, zero), dimensions={1,2,4}, to_apply=add, metadata={op_name="jit(step)/jvp(Net)/Block_0/GroupNorm_0/reduce_sum" source_file="/home/me/net.py" source_line=8}
  h = f32[8,64,64,8,4] reshape(y), metadata={op_name="jit(step)/transpose(jvp(Net))/jvp(Net)/checkpoint/Block_1/GroupNorm_0/reshape" source_file="/home/me/net.py" source_line=7}
  t = f32[8,8] reduce(h, zero), dimensions={1,2,4}, to_apply=add, metadata={op_name="jit(step)/transpose(jvp(Net))/jvp(Net)/checkpoint/Block_1/GroupNorm_0/jit(_sum)/reduce_sum" source_file="/home/me/net.py" source_line=9}
  ROOT both = (f32[8,8], f32[8,8]) tuple(s, t)
}
"#;

fn explained(text: &str, float_mode: FloatMode) -> Explanation {
    let module = tilewright::parse(text).unwrap();
    let mut options = Options::new(tilewright::target("tpu-like").unwrap());
    options.float_mode = float_mode;
    let optimized = tilewright::optimize(module.clone(), &options).unwrap();
    tilewright_tools::explain(&module, &optimized, &options).unwrap()
}

#[test]
fn layers_are_sorted_by_what_they_save() {
    let explanation = explained(LAYERS, FloatMode::default());
    let scopes: Vec<&str> = explanation.layers.iter().map(|layer| layer.scope.as_str()).collect();
    assert_eq!(scopes, ["Net/Block_1/GroupNorm_0", "Net/Block_0/GroupNorm_0"]);
    let [large, small] = explanation.layers.as_slice() else { panic!("two layers") };
    assert_eq!(large.pattern, "sums of f32[8,64,64,8,4] over {1,2,4}");
    assert_eq!(small.source.as_deref(), Some("/home/me/net.py:7"));
    assert_eq!(small.array_bytes, 8 * 32 * 32 * 32 * 4);
    assert!(large.saved() > small.saved() && small.saved() > 0.0);
    assert_eq!(large.rewrites.iter().collect::<Vec<_>>(), [(&"reshape-out-of-region", &1)]);
}

#[test]
fn an_explanation_is_text() {
    insta::assert_snapshot!(explained(LAYERS, FloatMode::default()));
    insta::assert_snapshot!(explained(LAYERS, FloatMode::default()).all());
    insta::assert_snapshot!(explained(LAYERS, FloatMode::Exact));
}

/// A group sum with something in the way, what the explanation says of it, and what helps.
const OBSTACLES: [(&str, &str, &str); 4] = [
    ("g = f32[8,<=32,32,8,4] reshape(x)", "dynamic dims", "pad the array"),
    (
        "g = f32[8,32,32,8,4]{3,4,2,1,0} reshape(x)",
        "does not lie row major",
        "leave layouts to the compiler",
    ),
    (
        "k = f32[8,32,32,8,4] reshape(x)\n  g = f32[8,32,32,8,4] negate(k), sharding={devices=[8,1,1,1,1]<=[8]}",
        "control edges",
        "state shardings by constraints",
    ),
    (
        "k = f32[8,32,32,8,4] reshape(x)\n  g = f32[8,32,32,8,4] custom-call(k), custom_call_target=\"Sharding\", sharding={devices=[1,1,1,1,4]<=[4]}",
        "cannot be stated in the other dims",
        "divide whole channels",
    ),
];

#[test]
fn obstacles_come_with_what_helps() {
    for (line, why, advice) in OBSTACLES {
        let x = if line.contains("<=32") { "f32[8,<=32,32,32]" } else { "f32[8,32,32,32]" };
        let text = format!(
            "HloModule m\n\nadd {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT sum = \
             f32[] add(a, b)\n}}\n\nENTRY main {{\n  x = {x} parameter(0)\n  zero = f32[] \
             constant(0)\n  {line}\n  q = {} multiply(g, g)\n  ROOT s = f32[8,8] reduce(q, zero), \
             dimensions={{1,2,4}}, to_apply=add\n}}\n",
            shape_of(line)
        );
        let explanation = explained(&text, FloatMode::default());
        let found = explanation.obstacles.iter().find(|one| one.why.contains(why));
        let found = found.unwrap_or_else(|| panic!("{why}: {explanation}\n{}", explanation.all()));
        assert!(found.advice.is_some_and(|text| text.contains(advice)), "{found:?}");
        assert!(found.count >= 1 && !found.place.is_empty(), "{found:?}");
    }
}

fn shape_of(line: &str) -> &str {
    let last = line.lines().last().unwrap_or_default().trim();
    last.split(' ').nth(2).unwrap_or_default()
}

#[test]
fn exact_sums_are_an_obstacle() {
    let explanation = explained(LAYERS, FloatMode::Exact);
    let [obstacle] = explanation.obstacles.as_slice() else { panic!("{}", explanation.all()) };
    assert_eq!(obstacle.count, 2);
    assert!(obstacle.advice.unwrap().contains("--exact"), "{obstacle:?}");
}

/// A module in which nothing pays: a product of matrices, a sort, and a transpose that a sine reads.
const DULL: &str = r#"
HloModule dull

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = f32[1024,1024] parameter(0)
  y = f32[1024,1024] parameter(1)
  product = f32[1024,1024] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  sorted = f32[1024,1024] sort(y), dimensions={1}, to_apply=less
  turned = f32[1024,1024] transpose(x), dimensions={1,0}
  s = f32[1024,1024] sine(turned)
  ROOT all = (f32[1024,1024], f32[1024,1024], f32[1024,1024]) tuple(product, sorted, s)
}
"#;

#[test]
fn where_nothing_pays_it_says_where_the_cycles_go() {
    let explained = |text: &str, target: &str| {
        let module = tilewright::parse(text).unwrap();
        let options = Options::new(tilewright::target(target).unwrap());
        let optimized = tilewright::optimize(module.clone(), &options).unwrap();
        tilewright_tools::explain(&module, &optimized, &options).unwrap()
    };
    let explanation = explained(DULL, "tpu-like");
    let all: f64 = explanation.shares.iter().map(|share| share.share).sum();
    assert!((all - 1.0).abs() < 1e-9 && explanation.layers.is_empty(), "{explanation}");
    let text = explained(DULL, "xla-cpu-0.12").to_string();
    assert!(text.contains("matrix products and convolutions"), "{text}");
    assert!(
        text.contains("`sorted`") && text.contains("225 times as long as a copy of its bytes"),
        "{text}"
    );
    // Arrays of 4 MB are not large there, those of 64 MB are.
    assert!(!text.contains("hugetlb"), "{text}");
    let large = explained(&DULL.replace("1024,1024", "4096,4096"), "xla-cpu-0.12").to_string();
    assert!(
        large.contains("arrays of 16.0 MiB and more, such as `") && large.contains("hugetlb=1"),
        "{large}"
    );
    // What was rewritten needs no other remedy.
    let rewritten = explained(LAYERS, "tpu-like");
    assert!(rewritten.shares.is_empty() && rewritten.remedies.is_empty(), "{rewritten}");
}

#[test]
fn a_sum_of_squares_is_no_norm() {
    // The distances of N bodies: a root of a sum, which is no mean.
    let text = r#"
HloModule bodies
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}
ENTRY main {
  d = f32[256,256,8] parameter(0)
  e = f32[256,256,4,2] reshape(d)
  zero = f32[] constant(0)
  squares = f32[256,256,4,2] multiply(e, e)
  s = f32[256,256] reduce(squares, zero), dimensions={2,3}, to_apply=add
  r = f32[256,256] rsqrt(s)
  b = f32[256,256,8] broadcast(r), dimensions={0,1}
  ROOT f = f32[256,256,8] multiply(d, b)
}"#;
    let explanation = explained(text, FloatMode::default());
    let [layer] = explanation.layers.as_slice() else { panic!("{explanation}") };
    assert!(layer.pattern.starts_with("sums of"), "{layer:?}");
    let mean = text.replace("r = f32[256,256] rsqrt(s)", "n = f32[] constant(0.125)\n  k = f32[256,256] broadcast(n), dimensions={}\n  m = f32[256,256] multiply(s, k)\n  r = f32[256,256] rsqrt(m)");
    let explanation = explained(&mean, FloatMode::default());
    let [layer] = explanation.layers.as_slice() else { panic!("{explanation}") };
    assert!(layer.pattern.starts_with("norm of"), "{layer:?}");
    assert!(explanation.to_string().contains("debug_info=True"), "{explanation}");
}
