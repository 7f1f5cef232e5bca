//! Reads attributes by their kind: this module knows no single op.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::ops::attr::{AttrKind, AttrSpec, AttrValue, AttrValues, Real, Verbatim};
use tilewright_ir::{CompId, Extras, InstId, Opcode, similar};

use super::computation::Scope;
use super::header::MAX_ATTRIBUTES;
use super::instruction::Head;
use super::metadata::Metadata;
use super::verbatim::Extent;
use super::{Failed, Parse, Parser, SyntaxError};
use crate::span::Span;

/// The attributes of one instruction. It is large: pass it by reference.
#[derive(Default)]
pub(super) struct Attributes<'s> {
    /// The attributes of the op.
    pub(super) values: AttrValues,
    /// The positions of the attributes.
    spans: SmallVec<[(&'static str, Span); 4]>,
    extras: Option<Box<Extras>>,
    metadata: Option<Metadata<'s>>,
    /// The end of the operands and the op's own attributes.
    pub(super) own_end: u32,
}

impl Attributes<'_> {
    /// Returns the position of an attribute of the op.
    pub(super) fn span_of(&self, name: &str) -> Option<Span> {
        self.spans.iter().find(|(n, _)| *n == name).map(|&(_, span)| span)
    }

    /// Returns the names of attributes that the op does not have.
    pub(super) fn other_names(&self) -> impl Iterator<Item = &str> {
        self.extras.iter().flat_map(|extras| &extras.other).map(|(name, _)| name.as_str())
    }

    /// Takes out an attribute that the op does not have; removes the extras if it was the last.
    pub(super) fn take_other(&mut self, name: &str) -> Option<Verbatim> {
        let extras = self.extras.as_deref_mut()?;
        let at = extras.other.iter().position(|(other, _)| other == name)?;
        let (_, value) = extras.other.remove(at);
        self.extras = self.extras.take().filter(|extras| !extras.is_empty());
        Some(value)
    }

    fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }
}

/// Finds the attribute of the op with this name. For an asynchronous op, the attributes of the
/// wrapped op come before those of its start; the start's `calls` is the computation that wraps
/// the op.
fn attribute_of(head: &Head, name: &str) -> Option<&'static AttrSpec> {
    let find = |opcode: Opcode| opcode.attrs().iter().find(|spec| spec.name == name);
    match head.wrapped {
        Some(wrapped) => find(wrapped).or_else(|| find(head.opcode).filter(|_| name != "calls")),
        None => find(head.opcode),
    }
}

impl<'s> Parser<'s> {
    /// `attributes := ("," word "=" value)*`
    pub(super) fn attributes(
        &mut self,
        scope: &mut Scope<'s>,
        head: &Head,
        attributes: &mut Attributes<'s>,
    ) -> Parse<()> {
        attributes.own_end = Span::new(0, self.cursor.pos()).end;
        while self.accept(b',') {
            let (name, span) = self.attribute_word()?;
            let Some(spec) = attribute_of(head, name) else {
                self.common_attribute(scope, name, span, attributes)?;
                continue;
            };
            self.cursor.skip_space();
            let start = self.cursor.pos();
            let value = self.value(scope, spec.kind)?;
            if !attributes.values.insert(spec.name, value) {
                return self.repeated(name, span);
            }
            let value_span = self.span_since(start);
            attributes.spans.push((spec.name, value_span));
            attributes.own_end = value_span.end;
        }
        if self.attribute_follows() {
            self.unexpected("`,` before the next attribute")
        } else {
            Ok(())
        }
    }

    /// Checks whether `word=` is here, the beginning of every attribute.
    fn attribute_follows(&self) -> bool {
        let mut ahead = self.cursor;
        ahead.word().is_some() && ahead.peek() == b'='
    }

    /// Returns the name of an attribute and its `=`.
    pub(super) fn attribute_word(&mut self) -> Parse<(&'s str, Span)> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let Some(name) = self.cursor.word() else {
            return self.unexpected("an attribute, as `dimensions={0}`");
        };
        let span = self.span_since(start);
        self.expect(b'=', "`=` and the value of the attribute")?;
        Ok((name, span))
    }

    /// Returns the value of an attribute of an op.
    fn value(&mut self, scope: &mut Scope<'s>, kind: AttrKind) -> Parse<AttrValue> {
        Ok(match kind {
            AttrKind::Int => AttrValue::Int(self.integer("an integer")?),
            AttrKind::Bool => AttrValue::Bool(self.boolean()?),
            AttrKind::Float => AttrValue::Float(self.real()?),
            AttrKind::Str => AttrValue::Str(self.string("a string in quotes")?),
            AttrKind::Word => AttrValue::Word(self.plain_word()?),
            AttrKind::Dims => AttrValue::Dims(self.integers()?),
            AttrKind::Computation => AttrValue::Computation(self.called(scope)?),
            AttrKind::Computations => AttrValue::Computations(self.all_called(scope)?),
            AttrKind::Slices => AttrValue::Slices(self.slices()?),
            AttrKind::Padding => AttrValue::Padding(self.padding()?),
            AttrKind::Window => AttrValue::Window(self.window()?),
            AttrKind::ConvDims => AttrValue::ConvDims(self.conv_dims()?),
            AttrKind::Words => AttrValue::Words(self.words()?),
            AttrKind::DimsLists => {
                AttrValue::DimsLists(self.braced("`{` and lists of sizes", Self::integers)?)
            }
            AttrKind::Pairs => AttrValue::Pairs(self.pairs()?),
            AttrKind::Sparsity => AttrValue::Sparsity(self.sparsity_config()?),
            AttrKind::Accuracy => AttrValue::Accuracy(self.accuracy()?),
            AttrKind::Shape => AttrValue::Shape(self.shape()?),
            AttrKind::Shapes => {
                AttrValue::Shapes(self.braced("`{` and shapes, as `{f32[2]{0}}`", Self::shape)?)
            }
            AttrKind::Literal => AttrValue::Literal(Box::new(self.shaped_literal()?)),
            AttrKind::Aliasing => AttrValue::Aliasing(self.aliasing()?),
            AttrKind::ReplicaGroups => AttrValue::ReplicaGroups(Box::new(self.replica_groups()?)),
            AttrKind::Domain => AttrValue::Domain(Box::new(self.domain()?)),
        })
    }

    /// Returns an attribute that any instruction may have, or that is not known.
    fn common_attribute(
        &mut self,
        scope: &mut Scope<'s>,
        name: &'s str,
        span: Span,
        attributes: &mut Attributes<'s>,
    ) -> Parse<()> {
        match name {
            "metadata" => {
                let metadata = self.metadata()?;
                if attributes.metadata.replace(metadata).is_some() {
                    return self.repeated(name, span);
                }
            }
            "sharding" => {
                let value = Box::new(self.sharding()?);
                self.once(&mut attributes.extras().sharding, value, name, span)?;
            }
            "frontend_attributes" => {
                let value = self.frontend_attributes()?;
                self.filled(&mut attributes.extras().frontend_attributes, value, name, span)?;
            }
            "parameter_replication" => {
                let value = self.booleans()?;
                self.filled(&mut attributes.extras().parameter_replication, value, name, span)?;
            }
            "statistics" => {
                let value = Box::new(self.statistics()?);
                self.once(&mut attributes.extras().statistics, value, name, span)?;
            }
            "origin" => {
                let value = Box::new(self.origin()?);
                self.once(&mut attributes.extras().origin, value, name, span)?;
            }
            "backend_config" => {
                let value = self.verbatim(Extent::Json)?;
                self.once(&mut attributes.extras().backend_config, value, name, span)?;
            }
            "control-predecessors" => {
                let value = self.predecessors(scope)?;
                self.filled(&mut attributes.extras().control_predecessors, value, name, span)?;
            }
            _ => return self.other_attribute(name, span, attributes),
        }
        Ok(())
    }

    fn once<T>(&mut self, slot: &mut Option<T>, value: T, name: &str, span: Span) -> Parse<()> {
        if slot.replace(value).is_some() { self.repeated(name, span) } else { Ok(()) }
    }

    /// Like [`Self::once`], if no items mean the same as no attribute.
    fn filled<T>(&mut self, slot: &mut Vec<T>, value: Vec<T>, name: &str, span: Span) -> Parse<()> {
        if slot.is_empty() {
            *slot = value;
            return Ok(());
        }
        self.repeated(name, span)
    }

    fn other_attribute(
        &mut self,
        name: &'s str,
        span: Span,
        attributes: &mut Attributes<'s>,
    ) -> Parse<()> {
        let value = self.verbatim(Extent::Attribute)?;
        let other = &mut attributes.extras().other;
        if other.iter().any(|(n, _)| n == name) {
            return self.repeated(name, span);
        }
        if other.len() >= MAX_ATTRIBUTES {
            return self.fail(SyntaxError::new(span, "too many attributes"));
        }
        other.push((name.into(), value));
        Ok(())
    }

    /// Gives an instruction the attributes that are not part of its op.
    pub(super) fn attach(&mut self, id: InstId, attributes: &mut Attributes<'s>) {
        match attributes.metadata.take() {
            None => {}
            Some(Metadata::SameAs(other)) => self.module.copy_metadata(other, id),
            Some(Metadata::New { metadata, text }) => {
                self.module.set_metadata(id, metadata);
                self.metadata.insert(text, id);
            }
        }
        if let Some(extras) = attributes.extras.take() {
            self.module.set_extras(id, *extras);
        }
    }

    /// `boolean := "true" | "false"`
    pub(super) fn boolean(&mut self) -> Parse<bool> {
        let value = match self.cursor.peek_word() {
            Some("true") => true,
            Some("false") => false,
            _ => return self.unexpected("`true` or `false`"),
        };
        self.cursor.word();
        Ok(value)
    }

    fn real(&mut self) -> Parse<Real> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        match self.cursor.number().parse() {
            Ok(value) => Ok(Real(value)),
            Err(_) => {
                self.cursor.set_pos(start);
                self.unexpected("a number, as `0.001`")
            }
        }
    }

    pub(super) fn plain_word(&mut self) -> Parse<SmolStr> {
        match self.cursor.word() {
            Some(word) => Ok(word.into()),
            None => self.unexpected("a word"),
        }
    }

    /// `called := name | body`
    fn called(&mut self, scope: &Scope<'s>) -> Parse<CompId> {
        self.cursor.skip_space();
        if self.cursor.peek() == b'{' {
            return self.inline_computation(scope);
        }
        let (name, span) = self.name("the name of a computation, or one in braces")?;
        match self.computations.get(name) {
            Some(Some(id)) => Ok(id),
            // An error in it was reported there.
            Some(None) => Err(Failed),
            None => self.unknown_computation(scope, name, span),
        }
    }

    /// `all_called := "{" [called ("," called)*] "}"`
    fn all_called(&mut self, scope: &Scope<'s>) -> Parse<SmallVec<[CompId; 2]>> {
        self.expect(b'{', "`{` and names of computations")?;
        let mut called = SmallVec::new();
        while !self.accept(b'}') {
            if !called.is_empty() {
                self.expect(b',', "`,` or `}`")?;
            }
            called.push(self.called(scope)?);
        }
        Ok(called)
    }

    #[cold]
    fn unknown_computation(&mut self, scope: &Scope<'s>, name: &str, span: Span) -> Parse<CompId> {
        const MOST_NAMES: usize = 10_000;
        let message = format!("no computation `{name}` stands before this");
        let mut error = SyntaxError::new(span, message);
        if self.module.computation(scope.id).name() == name {
            return self.fail(error.help("a computation cannot call itself"));
        }
        let known = self.computations.len();
        match similar(name, self.computations.iter().take(MOST_NAMES)) {
            Some(other) if known <= MOST_NAMES => {
                error = error.help(format!("did you mean `{other}`?"));
            }
            _ => error = error.help("a computation stands before those that call it"),
        }
        self.fail(error)
    }

    /// `predecessors := "{" [name ("," name)*] "}"`
    fn predecessors(&mut self, scope: &Scope<'s>) -> Parse<Vec<InstId>> {
        self.expect(b'{', "`{` and names of instructions")?;
        let mut predecessors = Vec::new();
        while !self.accept(b'}') {
            if !predecessors.is_empty() {
                self.expect(b',', "`,` or `}`")?;
            }
            let (name, span) = self.name("the name of an instruction")?;
            predecessors.push(self.instruction_named(scope, name, span)?);
        }
        Ok(predecessors)
    }
}
