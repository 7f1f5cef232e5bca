//! The header of a changed module: what it says of parameters and results follows these.

use tilewright::ir::metadata::InputOutputAlias;
use tilewright::ir::{Header, InstId, Op, ProgramShape, Shape, dims};

use super::DraftRoot;
use super::writer::Writer;
use crate::reduce::annotations::{Kinds, strip_header, strip_shape};

/// Where the arrays of the old result are in the new one.
enum Moved {
    /// Where they were.
    Nowhere,
    /// For each element of the new tuple, the number of the element that it was.
    Elements(Vec<usize>),
    /// Not in the new result.
    Away,
}

impl Writer<'_> {
    pub(super) fn header(&self) -> Option<Header> {
        let mut header = self.from.header.clone();
        header.residue = Box::default();
        strip_header(&mut header, self.draft.stripped_header);
        let moved = self.moved();
        let old = self.from.computation(self.entry).parameters();
        let number = |old_number: i64| -> Option<i64> {
            let id = old.get(usize::try_from(old_number).ok()?)?;
            self.numbers.get(id).copied()
        };
        let aliases = std::mem::take(&mut header.input_output_alias);
        header.input_output_alias = aliases
            .into_iter()
            .filter_map(|alias| {
                let output = moved.follow(&alias.output)?;
                let parameter = number(alias.parameter)?;
                Some(InputOutputAlias { output: dims(output), parameter, ..alias })
            })
            .collect();
        let donors = std::mem::take(&mut header.buffer_donors);
        header.buffer_donors = donors
            .into_iter()
            .filter_map(|(parameter, part)| Some((number(parameter)?, part)))
            .collect();
        self.propagation(&mut header, &moved);
        header.entry_layout = match header.entry_layout.take() {
            Some(layout) => Some(self.entry_layout(layout)?),
            None => None,
        };
        Some(header)
    }

    fn moved(&self) -> Moved {
        let computation = self.from.computation(self.entry);
        let Some(root) = computation.root() else { return Moved::Away };
        match self.draft.roots.get(&self.entry) {
            None => match self.draft.stands.get(&root) {
                None if !self.draft.inlined.contains_key(&root) => Moved::Nowhere,
                Some(_) | None => Moved::Away,
            },
            Some(DraftRoot::Tuple(elements)) if matches!(self.from.op(root), Op::Tuple) => {
                let mut left = self.from.operands(root).iter().enumerate();
                let places = elements
                    .iter()
                    .map(|element| left.find(|(_, old)| *old == element).map(|(place, _)| place));
                places.collect::<Option<Vec<_>>>().map_or(Moved::Away, Moved::Elements)
            }
            Some(DraftRoot::Tuple(_) | DraftRoot::Of(_)) => Moved::Away,
        }
    }

    /// What a partitioner may choose, for each parameter and each array of the result.
    fn propagation(&self, header: &mut Header, moved: &Moved) {
        let old = self.from.computation(self.entry).parameters();
        let parameters = &mut header.allow_sharding_propagation_to_parameters;
        if parameters.len() > 1 {
            let is_kept = |(id, _): &(&InstId, &bool)| self.numbers.contains_key(id);
            let mut flags: Vec<bool> =
                old.iter().zip(&*parameters).filter(is_kept).map(|(_, &flag)| flag).collect();
            flags.extend(self.added.iter().map(|_| false));
            *parameters = flags;
        }
        let output = &mut header.allow_sharding_propagation_to_output;
        if output.len() > 1 {
            match moved {
                Moved::Nowhere => {}
                Moved::Elements(places) => {
                    let flags = places.iter().map(|&at| output.get(at).copied());
                    *output = flags.map(Option::unwrap_or_default).collect();
                }
                Moved::Away => output.clear(),
            }
        }
    }

    fn entry_layout(&self, old: ProgramShape) -> Option<ProgramShape> {
        let parameters = self.from.computation(self.entry).parameters();
        let given = parameters.iter().zip(&old.parameters);
        let kept = given.filter(|(id, _)| self.numbers.contains_key(id));
        let mut shapes: Vec<Shape> =
            kept.map(|(id, shape)| self.draft.shapes.get(id).unwrap_or(shape).clone()).collect();
        shapes.extend(self.added.iter().cloned());
        let entry = self.to.entry()?;
        let root = self.to.shape(self.to.computation(entry).root()?);
        let result = if root.compatible(&old.result) { old.result } else { root.clone() };
        let mut layout = ProgramShape { parameters: shapes, result };
        if self.draft.stripped_header.has(Kinds::LAYOUTS) {
            layout.parameters.iter_mut().for_each(|shape| strip_shape(shape, Kinds::LAYOUTS));
            strip_shape(&mut layout.result, Kinds::LAYOUTS);
        }
        Some(layout)
    }
}

impl Moved {
    /// Returns the new index of a part of the old result.
    fn follow(&self, index: &[i64]) -> Option<Vec<i64>> {
        match self {
            Self::Nowhere => Some(index.to_vec()),
            Self::Elements(places) => {
                let (&first, rest) = index.split_first()?;
                let first = usize::try_from(first).ok()?;
                let place = places.iter().position(|&place| place == first)?;
                Some([i64::try_from(place).ok()?].into_iter().chain(rest.iter().copied()).collect())
            }
            Self::Away => None,
        }
    }
}
