//! Computations and the module they make up.

use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};
use tilewright_ir::{CompId, EditError, InstId, Op, Opcode, Shape};

use super::{Names, Parse, Parser, SyntaxError};
use crate::lexer::END;
use crate::span::Span;

/// The computation whose instructions are being read.
pub(super) struct Scope<'s> {
    pub(super) id: CompId,
    pub(super) names: Names<'s, InstId>,
    /// Names that the parser made up.
    pub(super) made_up: FxHashMap<SmolStr, InstId>,
    /// The number of names tried for nested instructions of an opcode.
    pub(super) tried: FxHashMap<Opcode, u64>,
    /// The elements of tuples that have no lines: of `x#1`, by `x` and the index.
    pub(super) elements: FxHashMap<(InstId, i64), InstId>,
    pub(super) root: Option<Span>,
    /// Whether there was an error in it.
    pub(super) broken: bool,
    /// Whether operands that are not known become parameters.
    pub(super) makes_parameters: bool,
}

impl Scope<'_> {
    pub(super) fn new(id: CompId) -> Self {
        Self {
            id,
            names: Names::default(),
            made_up: FxHashMap::default(),
            tried: FxHashMap::default(),
            elements: FxHashMap::default(),
            root: None,
            broken: false,
            makes_parameters: false,
        }
    }
}

/// A body that was read.
pub(super) struct Body {
    pub(super) broken: bool,
}

impl<'s> Parser<'s> {
    /// `text := header computation* | short form`
    pub(super) fn text(&mut self) {
        self.cursor.eat_text("\u{feff}");
        self.cursor.skip_space();
        if self.cursor.peek_word() == Some("HloModule") {
            if self.header().is_err() {
                self.recover_header();
            }
            self.computations();
        } else {
            self.short_form();
        }
        self.name_the_elements();
    }

    /// Reads all computations up to the end; the last is the entry unless another is marked.
    pub(super) fn computations(&mut self) {
        let mut entry = None;
        let mut last = None;
        loop {
            self.cursor.skip_space();
            if self.stopped || self.cursor.peek() == END {
                break;
            }
            match self.computation(&mut entry) {
                Ok(id) => last = Some(id),
                Err(_) => self.recover_computation(),
            }
        }
        self.name_the_nameless();
        match entry.map(|(id, _)| id).or(last) {
            Some(entry) => self.module.set_entry(entry),
            None if self.errors.is_empty() => {
                let _ = self.unexpected::<()>("a computation, as `ENTRY main { ... }`");
            }
            None => {}
        }
    }

    /// ```text
    /// computation := ["ENTRY"] name [parameters "->" shape] body
    ///                ["," "execution_thread" "=" string]
    /// ```
    fn computation(&mut self, entry: &mut Option<(CompId, Span)>) -> Parse<CompId> {
        let start = self.cursor.pos();
        let is_entry = self.keyword("ENTRY");
        let entry_span = self.span_since(start);
        let (name, span) = self.name("a computation, as `ENTRY main { ... }`")?;
        let result = self.named_computation(name, span);
        match result {
            Ok(id) if is_entry => self.claim_entry(entry, id, entry_span),
            Ok(_) => {}
            // Callers of the computation then report no error.
            Err(_) if self.computations.contains(name) => {}
            Err(_) => {
                self.computations.insert(name, None);
            }
        }
        result
    }

    fn named_computation(&mut self, name: &'s str, span: Span) -> Parse<CompId> {
        let result = self.program_shape_of_computation()?;
        let id = self.module.add_computation(name);
        self.spans.set_computation(id, span);
        let body = self.body(id)?;
        self.check_result(id, result, &body);
        self.define_computation(name, span, id, &body);
        if self.accept(b',') {
            self.execution_thread(id)?;
        }
        Ok(id)
    }

    fn claim_entry(&mut self, entry: &mut Option<(CompId, Span)>, id: CompId, span: Span) {
        match *entry {
            None => *entry = Some((id, span)),
            Some((_, first)) => {
                let error = SyntaxError::new(span, "a second entry computation");
                let _ = self.fail::<()>(error.first(Some(first)));
            }
        }
    }

    fn define_computation(&mut self, name: &'s str, span: Span, id: CompId, body: &Body) {
        let defined = (!body.broken).then_some(id);
        if let Some(previous) = self.computations.insert(name, defined) {
            let first = previous.and_then(|first| self.spans.computation(first));
            let message = format!("a second computation named `{name}`");
            let _ = self.fail::<()>(SyntaxError::new(span, message).first(first));
        }
    }

    fn execution_thread(&mut self, id: CompId) -> Parse<()> {
        if !self.keyword("execution_thread") {
            return self.unexpected("`execution_thread=\"name\"`");
        }
        self.expect(b'=', "`=`")?;
        let thread = self.string("the name of a thread in quotes")?;
        self.module.set_execution_thread(id, Some(thread));
        Ok(())
    }

    /// ```text
    /// parameters := "(" [name [":"] shape ("," name [":"] shape)*] ")"
    /// ```
    /// Only the result counts: the instructions define the parameters.
    fn program_shape_of_computation(&mut self) -> Parse<Option<(Shape, Span)>> {
        if !self.accept(b'(') {
            return Ok(None);
        }
        let mut first = true;
        while !self.accept(b')') {
            if !std::mem::take(&mut first) {
                self.expect(b',', "`,` or `)`")?;
            }
            self.name("the name of a parameter")?;
            self.accept(b':');
            self.shape()?;
        }
        self.arrow()?;
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let shape = self.shape()?;
        Ok(Some((shape, self.span_since(start))))
    }

    fn check_result(&mut self, id: CompId, declared: Option<(Shape, Span)>, body: &Body) {
        let (false, Some((declared, span))) = (body.broken, declared) else { return };
        let Some(root) = self.module.computation(id).root() else { return };
        let actual = self.module.shape(root);
        if !actual.compatible(&declared) {
            let message = format!(
                "the computation is said to yield {}, but its root `{}` is {}",
                declared.without_layout(),
                self.module.name_of(root),
                actual.without_layout()
            );
            let _ = self.fail::<()>(SyntaxError::new(span, message));
        }
    }

    /// `body := "{" instruction+ "}"`
    pub(super) fn body(&mut self, id: CompId) -> Parse<Body> {
        self.cursor.skip_space();
        let open = self.cursor.pos();
        self.expect(b'{', "`{` and the instructions of the computation")?;
        let names = self.spare_names.pop().unwrap_or_default();
        let mut scope = Scope { names, ..Scope::new(id) };
        let closed = self.instructions(&mut scope, open);
        let broken = scope.broken || closed.is_err();
        if !broken {
            scope.broken = self.finish_body(&scope, open).is_err();
        }
        let broken = broken || scope.broken;
        if scope.names.clear() {
            self.spare_names.push(scope.names);
        }
        closed?;
        Ok(Body { broken })
    }

    /// Returns the instructions up to the `}`, which is read too.
    fn instructions(&mut self, scope: &mut Scope<'s>, open: usize) -> Parse<()> {
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                b'}' => {
                    self.cursor.bump();
                    return Ok(());
                }
                END => return self.open_body(open),
                _ => {}
            }
            let start = self.cursor.pos();
            if self.instruction(scope).is_err() {
                scope.broken = true;
                if self.stopped {
                    return Err(super::Failed);
                }
                self.recover_instruction(start);
            }
        }
    }

    fn open_body(&mut self, open: usize) -> Parse<()> {
        if self.cursor.open_comment().is_some() {
            return self.unexpected("");
        }
        self.stopped = true;
        let error = SyntaxError::new(
            Span::new(open, open + 1),
            "the text ends before this computation does",
        )
        .expected("a `}` further on");
        self.fail(error)
    }

    /// Checks that are possible only at the end of a computation.
    fn finish_body(&mut self, scope: &Scope<'s>, open: usize) -> Parse<()> {
        if self.module.computation(scope.id).is_empty() {
            let span = Span::new(open, self.cursor.pos());
            let error = SyntaxError::new(span, "a computation without instructions")
                .expected("at least one instruction, the root");
            return self.fail(error);
        }
        match self.module.order_parameters(scope.id) {
            Ok(()) => Ok(()),
            Err(error) => self.parameter_error(scope.id, &error),
        }
    }

    #[cold]
    fn parameter_error(&mut self, id: CompId, error: &EditError) -> Parse<()> {
        let parameters = self.module.computation(id).parameters();
        let number = |&id: &InstId| match self.module.op(id) {
            Op::Parameter(parameter) => parameter.number,
            _ => -1,
        };
        let wrong = (0i64..).zip(parameters).find(|(i, id)| *i != number(id));
        let Some((expected, wrong)) = wrong else {
            return self.fail(SyntaxError::new(Span::default(), error.to_string()));
        };
        let number = number(wrong);
        let message = if number < expected {
            format!("a second parameter with number {number}")
        } else {
            format!("parameter {number}, but there is no parameter {expected}")
        };
        let span = self.spans.instruction(*wrong).unwrap_or_default();
        let error = SyntaxError::new(span, message)
            .help("the parameters of a computation are numbered 0, 1, 2 ...");
        self.fail(error)
    }

    /// Returns a computation that stands where its name could: in an attribute.
    pub(super) fn inline_computation(&mut self, scope: &Scope<'s>) -> Parse<CompId> {
        let start = self.cursor.pos();
        let id = self.module.add_computation_before("_", scope.id);
        self.spans.set_computation(id, Span::new(start, start + 1));
        let body = self.nested(|parser| parser.body(id))?;
        // XLA numbers the inner ones of nested bodies first.
        self.nameless.push((id, "_"));
        if body.broken { Err(super::Failed) } else { Ok(id) }
    }

    /// Gives inline computations names that are free: `_`, `_.1`, `_.2` ...
    pub(super) fn name_the_nameless(&mut self) {
        // The number of names tried of each kind; there are few kinds.
        let mut tried: Vec<(&str, u64)> = Vec::new();
        for &(id, stem) in &self.nameless {
            let kind = tried.iter().position(|(other, _)| *other == stem).unwrap_or(tried.len());
            if kind == tried.len() {
                tried.push((stem, 0));
            }
            let Some((_, number)) = tried.get_mut(kind) else { continue };
            let name = loop {
                let name = match *number {
                    0 => SmolStr::new_static(stem),
                    number => format_smolstr!("{stem}.{number}"),
                };
                *number += 1;
                if !self.computations.contains(&name) {
                    break name;
                }
            };
            self.module.set_computation_name(id, name);
        }
    }
}
