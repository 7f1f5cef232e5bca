//! Where `native-calls` computes a whole gradient by one call, and where it must not. The fixtures
//! compare values; these modules are too large for that.

use tilewright_rewrite::numbers::FloatMode;
use tilewright_rewrite::{Options, PassSelection, optimize};
use tilewright_target::Target;
use tilewright_text::{Form, PrintOptions, parse_and_verify, print};

/// The gradient of a norm of rows, as one module.
struct Gradient {
    element_type: &'static str,
    dims: [i64; 2],
    /// Whether the mean is subtracted: two reductions more.
    is_centered: bool,
    /// What is added up along columns, and the function that makes the inverse of the variance.
    columns: &'static str,
    inverse: &'static str,
    /// The parameter that is the array, and how the array is made of it.
    array: (&'static str, &'static str),
    /// The first result, from the gradient `dx`.
    result: &'static str,
}

const LAYER: Gradient = Gradient {
    element_type: "f32",
    dims: [8192, 512],
    is_centered: true,
    columns: "dscaled",
    inverse: "rsqrt(variance)",
    array: ("A", "copy(given)"),
    result: "ROOT all = (A, C, C) tuple(dx, dscale, dbias)",
};

impl Gradient {
    fn text(&self) -> String {
        let (given, array) = self.array;
        let centered = [
            "sum = R reduce(x, zero), dimensions={1}, to_apply=add
             mean = R divide(sum, count)
             means = A broadcast(mean), dimensions={0}
             apart = A subtract(x, means)",
            "scaled_sum = R reduce(scaled, zero), dimensions={1}, to_apply=add
             scaled_mean = R divide(scaled_sum, count)
             scaled_means = A broadcast(scaled_mean), dimensions={0}
             left = A subtract(scaled, scaled_means)",
        ];
        let plain = ["apart = A add(x, x)", "left = A add(scaled, scaled)"];
        let [apart, left] = if self.is_centered { centered } else { plain };
        let array = if array == "copy(given)" {
            format!("x = {given} parameter(0)")
        } else {
            format!("given = {given} parameter(0)\n  x = A {array}")
        };
        let Self { result, columns, inverse, .. } = self;
        let body = format!(
            "{array}
             dy = A parameter(1)
             scale = C parameter(2)
             zero = T[] constant(0)
             n = T[] constant(512)
             count = R broadcast(n), dimensions={{}}
             {apart}
             square = A multiply(apart, apart)
             squares = R reduce(square, zero), dimensions={{1}}, to_apply=add
             variance = R divide(squares, count)
             inverse = R {inverse}
             inverses = A broadcast(inverse), dimensions={{0}}
             normed = A multiply(apart, inverses)
             scales = A broadcast(scale), dimensions={{1}}
             scaled = A multiply(dy, scales)
             {left}
             along = A multiply(scaled, normed)
             along_sum = R reduce(along, zero), dimensions={{1}}, to_apply=add
             along_sums = A broadcast(along_sum), dimensions={{0}}
             part = A multiply(normed, along_sums)
             rest = A subtract(left, part)
             dx = A multiply(rest, inverses)
             dscaled = A multiply(dy, normed)
             dscale = C reduce({columns}, zero), dimensions={{0}}, to_apply=add
             dbias = C reduce(dy, zero), dimensions={{0}}, to_apply=add
             {result}"
        );
        let [rows, columns] = self.dims;
        let text = format!(
            "HloModule m\nadd {{\n a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] add(a, \
             b)\n}}\nENTRY e {{\n{body}\n}}\n"
        );
        let words = text.split(' ').map(|word| {
            let word = word.replace("(A,", &format!("(T[{rows},{columns}],"));
            match word.as_str() {
                "A" => format!("T[{rows},{columns}]"),
                "A{0,1}" => format!("T[{rows},{columns}]{{0,1}}"),
                "R" => format!("T[{rows}]"),
                "C" => format!("T[{columns}]"),
                "C," => format!("T[{columns}],"),
                "C)" => format!("T[{columns}])"),
                _ => word,
            }
        });
        words.collect::<Vec<_>>().join(" ").replace("T[", &format!("{}[", self.element_type))
    }

    /// Whether the pass calls a program.
    fn is_called(&self, float_mode: FloatMode) -> bool {
        let text = self.text();
        let module = parse_and_verify(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let options = Options::new(Target::builtin("cpu").unwrap())
            .with_float_mode(float_mode)
            .with_passes(PassSelection::List(vec!["native-calls".to_owned()]));
        let after = optimize(module, &options).unwrap().module;
        let text = print(&after, &PrintOptions::new().with_form(Form::Short)).unwrap();
        text.contains("tilewright_program")
    }
}

#[test]
fn a_gradient_of_many_reductions_is_called() {
    assert!(LAYER.is_called(FloatMode::Guarded));
    // So do those of an RMS norm.
    for dims in [LAYER.dims, [65_536, 64]] {
        let rms = Gradient { is_centered: false, dims, ..LAYER };
        assert!(rms.is_called(FloatMode::Guarded));
    }
}

#[test]
fn each_condition_counts() {
    let others = [
        ("exact", FloatMode::Exact, LAYER),
        ("small", FloatMode::Guarded, Gradient { dims: [1024, 512], ..LAYER }),
        ("short rows", FloatMode::Guarded, Gradient { dims: [524_288, 8], ..LAYER }),
        ("long rows", FloatMode::Guarded, Gradient { dims: [2048, 2048], ..LAYER }),
        (
            "one reduction of rows",
            FloatMode::Guarded,
            Gradient { is_centered: false, inverse: "broadcast(zero), dimensions={}", ..LAYER },
        ),
        ("columns of an argument", FloatMode::Guarded, Gradient { columns: "dy", ..LAYER }),
        (
            "an exponential",
            FloatMode::Guarded,
            Gradient { inverse: "exponential(variance)", ..LAYER },
        ),
        ("another type", FloatMode::Guarded, Gradient { element_type: "f64", ..LAYER }),
        (
            "computed",
            FloatMode::Guarded,
            Gradient { array: ("A", "reverse(given), dimensions={0}"), ..LAYER },
        ),
        (
            "column major",
            FloatMode::Guarded,
            Gradient { array: ("A{0,1}", "copy(given)"), ..LAYER },
        ),
        (
            "fused with its user",
            FloatMode::Guarded,
            Gradient {
                result: "back = A reverse(dx), dimensions={0}\nROOT all = (A, C, C) tuple(back, \
                         dscale, dbias)",
                ..LAYER
            },
        ),
        (
            "a slow function",
            FloatMode::Guarded,
            Gradient {
                result: "bent = A tanh(dx)\nROOT all = (A, C, C) tuple(bent, dscale, dbias)",
                ..LAYER
            },
        ),
        (
            "a sharding",
            FloatMode::Guarded,
            Gradient {
                result: "more = A add(dx, dx), sharding={replicated}\nROOT all = (A, C, C) \
                         tuple(more, dscale, dbias)",
                ..LAYER
            },
        ),
    ];
    for (name, float_mode, gradient) in others {
        assert!(!gradient.is_called(float_mode), "{name}");
    }
}
