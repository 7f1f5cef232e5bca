//! Prints the HLO of a composite. Parameters are the array, the scale and the bias;
//! the results of a composite that has several are a tuple.
//!
//! ```text
//! cargo run --example composites -- group_norm 'bf16[2,8,8,320]' \
//!     batch=0 channel=-1 groups=32 scale='f32[320]' epsilon=1e-6
//! cargo run --example composites -- top_k 'f32[10,4]' k=3 dim=0
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::str::FromStr;

use tilewright::composite::{
    BatchNorm, Groups, Norm, Variance, argmax, argmin, batch_norm, diagonal, ghost_batch_norm,
    group_norm, instance_norm, layer_norm, log_softmax, mean, rms_norm, softmax, top_k, variance,
    weight_norm,
};
use tilewright::prelude::*;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("name a composite, such as softmax")?;
    let x = words.next().ok_or("give the shape of the array, such as f32[2,3]")?;
    let module = build(&name, &x, &Arguments::new(words))?;
    Ok(io::stdout().write_all(tilewright::print(&module, &PrintOptions::default())?.as_bytes())?)
}

fn build(name: &str, shape: &str, given: &Arguments) -> Result<Verified> {
    let mut b = Builder::new(name);
    let x = b.parameter("x", shape_of(shape)?)?;
    let norm = given.norm(&mut b)?;
    let results = composite(&mut b, name, x, given, &norm)?;
    let root = match results[..] {
        [result] => result,
        _ => b.op(Op::Tuple, &results)?,
    };
    Ok(b.finish(root)?)
}

fn composite(
    b: &mut Builder,
    name: &str,
    x: InstId,
    given: &Arguments,
    norm: &Norm,
) -> Result<Vec<InstId>> {
    let (one, many) = (|key| given.value::<i64>(key), |key| given.list(key));
    let all = |BatchNorm { y, mean, variance }| vec![y, mean, variance];
    Ok(match name {
        "mean" => vec![mean(b, x, &many("dims")?)?],
        "variance" => {
            let correction = given.value("correction")?;
            vec![variance(b, x, &many("dims")?, correction, norm.variance)?]
        }
        "argmax" => vec![argmax(b, x, one("dim")?)?],
        "argmin" => vec![argmin(b, x, one("dim")?)?],
        "top_k" => {
            let (values, places) = top_k(b, x, one("k")?, one("dim")?)?;
            vec![values, places]
        }
        "diagonal" => vec![diagonal(b, x, one("offset")?, one("dim1")?, one("dim2")?)?],
        "softmax" => vec![softmax(b, x, &many("dims")?)?],
        "log_softmax" => vec![log_softmax(b, x, &many("dims")?)?],
        "layer_norm" => vec![layer_norm(b, x, &many("dims")?, norm)?],
        "rms_norm" => vec![rms_norm(b, x, &many("dims")?, norm)?],
        "batch_norm" => all(batch_norm(b, x, one("channel")?, norm)?),
        "ghost_batch_norm" => {
            let (batch, channel, groups) = (one("batch")?, one("channel")?, one("groups")?);
            all(ghost_batch_norm(b, x, Groups { dim: batch, count: groups }, channel, norm)?)
        }
        "instance_norm" => vec![instance_norm(b, x, &many("batch")?, one("channel")?, norm)?],
        "group_norm" => {
            let (batch, channel, groups) = (many("batch")?, one("channel")?, one("groups")?);
            vec![group_norm(b, x, &batch, Groups { dim: channel, count: groups }, norm)?]
        }
        "weight_norm" => vec![weight_norm(b, x, &many("kept")?, norm.epsilon, norm.scale)?],
        _ => return Err(format!("there is no composite `{name}`").into()),
    })
}

/// Arguments as `key=value`.
struct Arguments(BTreeMap<String, String>);

impl Arguments {
    fn new(words: impl Iterator<Item = String>) -> Self {
        let pair = |word: String| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), value.to_owned()),
            None => (word, String::new()),
        };
        Self(words.map(pair).collect())
    }

    fn text(&self, key: &str) -> Result<&str> {
        Ok(self.0.get(key).ok_or_else(|| format!("give {key}=..."))?)
    }

    fn value<T: FromStr>(&self, key: &str) -> Result<T> {
        let text = self.text(key)?;
        Ok(text.parse().map_err(|_| format!("{key}={text} is no number"))?)
    }

    fn list(&self, key: &str) -> Result<Vec<i64>> {
        numbers(self.text(key)?)
    }

    fn norm(&self, b: &mut Builder) -> Result<Norm> {
        let mut norm = Norm::default();
        if self.0.contains_key("epsilon") {
            norm.epsilon = self.value("epsilon")?;
        }
        if self.0.contains_key("one-pass") {
            norm.variance = Variance::OnePass;
        }
        if let Some(shape) = self.0.get("scale") {
            norm.scale = Some(b.parameter("scale", shape_of(shape)?)?);
        }
        if let Some(shape) = self.0.get("bias") {
            norm.bias = Some(b.parameter("bias", shape_of(shape)?)?);
        }
        Ok(norm)
    }
}

/// Returns a shape as `f32[2,3]`.
fn shape_of(text: &str) -> Result<Shape> {
    let parts = text.strip_suffix(']').and_then(|text| text.split_once('['));
    let (name, dims) = parts.ok_or_else(|| format!("{text} is no shape such as f32[2,3]"))?;
    let element_type = ElementType::from_name(name).ok_or_else(|| format!("no type {name}"))?;
    Ok(Shape::array(element_type, numbers(dims)?))
}

fn numbers(text: &str) -> Result<Vec<i64>> {
    let words = text.split(',').filter(|word| !word.is_empty());
    Ok(words.map(str::parse).collect::<std::result::Result<_, _>>()?)
}
