//! Pictures of the layers that changed most.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tilewright::Target;
use tilewright::ir::{ArrayShape, InstId, Module, Opcode};
use tilewright_tools::explain::{Explanation, layer_of};

use crate::scene::{Emit, Options, Scene, Subject};

/// The most layers that are drawn.
const MOST_DRAWN: usize = 3;
/// How many edges away from a layer's largest reduction its picture goes.
const DEPTH: usize = 3;

/// What is around the largest reduction of a layer, before and after.
pub(super) struct LayerPicture {
    pub(super) name: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// Returns the pictures of the layers that save most.
pub(super) fn of_layers(
    before: &Module,
    after: &Module,
    explanation: &Explanation,
    target: &Target,
) -> Vec<LayerPicture> {
    let layers = explanation.layers.iter().take(MOST_DRAWN);
    let pictures = layers.map(|layer| LayerPicture {
        name: super::name(&layer.scope).to_owned(),
        before: drawn(before, &layer.scope, target),
        after: drawn(after, &layer.scope, target),
    });
    pictures.filter(|picture| picture.before.is_some() || picture.after.is_some()).collect()
}

fn drawn(module: &Module, layer: &str, target: &Target) -> Option<String> {
    let reduce = largest_reduce(module, layer)?;
    let subject = Subject::Around { name: module.name_of(reduce).to_owned(), depth: DEPTH };
    let options = Options::new(target.clone()).with_subject(subject);
    // A report without a picture is better than none.
    let svg = Scene::of(module, &options).ok()?.print(Emit::Svg).ok()?;
    Some(embedded(&svg))
}

fn largest_reduce(module: &Module, layer: &str) -> Option<InstId> {
    let reduces = module.instructions(module.entry()?);
    let reduces = reduces.filter(|&id| module.opcode(id) == Opcode::Reduce);
    let elements = |id: &InstId| {
        let array = module.operands(*id).first().and_then(|&array| module.array_shape(array));
        array.and_then(ArrayShape::num_elements).unwrap_or(0)
    };
    reduces.filter(|&id| layer_of(module, id) == layer).max_by_key(elements)
}

/// Returns a drawing as the address of an image, so that its style stays its own.
pub(super) fn embedded(svg: &str) -> String {
    format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg))
}
