//! Parses the header of a module.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::metadata::{FileLocation, StackFrame};
use tilewright_ir::{ProgramShape, StackTables};

use super::verbatim::Extent;
use super::{Parse, Parser, SyntaxError};
use crate::span::Span;

/// The most attributes of an instruction or a header.
pub(super) const MAX_ATTRIBUTES: usize = 256;

/// A field of a row of a table: its name and its destination.
type Field<Row> = (&'static str, fn(&mut Row) -> &mut i64);

const LOCATION_FIELDS: [Field<FileLocation>; 6] = [
    ("file_name_id", |row| &mut row.file_name_id),
    ("function_name_id", |row| &mut row.function_name_id),
    ("line", |row| &mut row.line),
    ("end_line", |row| &mut row.end_line),
    ("column", |row| &mut row.column),
    ("end_column", |row| &mut row.end_column),
];

const FRAME_FIELDS: [Field<StackFrame>; 2] = [
    ("file_location_id", |row| &mut row.file_location_id),
    ("parent_frame_id", |row| &mut row.parent_frame_id),
];

impl<'s> Parser<'s> {
    /// ```text
    /// header := "HloModule" name [":"] ("," word "=" value)* [tables]
    /// ```
    pub(super) fn header(&mut self) -> Parse<()> {
        self.cursor.word();
        let (name, span) = self.name("the name of the module")?;
        self.module.name = name.into();
        self.spans.set_module(span);
        // Older texts end the name with a colon.
        self.cursor.eat(b':');
        while self.accept(b',') {
            self.header_attribute()?;
        }
        self.stack_tables()
    }

    fn header_attribute(&mut self) -> Parse<()> {
        let (name, span) = self.attribute_word()?;
        if self.header_names.contains(&name) {
            return self.repeated(name, span);
        }
        if self.header_names.len() >= MAX_ATTRIBUTES {
            return self.fail(SyntaxError::new(span, "too many attributes"));
        }
        self.header_names.push(name);
        match name {
            "is_scheduled" => self.module.header.is_scheduled = self.boolean()?,
            "entry_computation_layout" => {
                self.expect(b'{', "`{(`, as in `{(f32[2])->f32[2]}`")?;
                let layout = self.program_shape()?;
                self.expect(b'}', "`}`")?;
                self.module.header.entry_layout = Some(layout);
            }
            "input_output_alias" => {
                self.module.header.input_output_alias = self.input_output_alias()?;
            }
            "buffer_donor" => self.module.header.buffer_donors = self.buffer_donors()?,
            "alias_passthrough_params" => {
                self.module.header.alias_passthrough_params = self.boolean()?;
            }
            "allow_spmd_sharding_propagation_to_parameters" => {
                let allowed = self.one_or_more_booleans()?;
                self.module.header.allow_sharding_propagation_to_parameters = allowed;
            }
            "allow_spmd_sharding_propagation_to_output" => {
                let allowed = self.one_or_more_booleans()?;
                self.module.header.allow_sharding_propagation_to_output = allowed;
            }
            "replica_count" => {
                self.module.header.replica_count = Some(self.integer("a number of replicas")?);
            }
            "num_partitions" => {
                self.module.header.num_partitions = Some(self.integer("a number of partitions")?);
            }
            "frontend_attributes" => {
                self.module.header.frontend_attributes = self.frontend_attributes()?;
            }
            "origin_recovery_table" => {
                self.module.header.origin_recovery = self.recovery_table(span)?;
            }
            _ => {
                let value = self.verbatim(Extent::Attribute)?;
                self.module.header.other.push((name.into(), value));
            }
        }
        Ok(())
    }

    #[cold]
    pub(super) fn repeated<T>(&mut self, name: &str, span: Span) -> Parse<T> {
        self.fail(SyntaxError::new(span, format!("attribute `{name}` stands here a second time")))
    }

    /// `program_shape := "(" [shape ("," shape)*] ")" "->" shape`
    fn program_shape(&mut self) -> Parse<ProgramShape> {
        self.expect(b'(', "`(` and the shapes of the parameters")?;
        let mut parameters = Vec::new();
        while !self.accept(b')') {
            if !parameters.is_empty() {
                self.expect(b',', "`,` or `)`")?;
            }
            parameters.push(self.shape()?);
        }
        self.arrow()?;
        Ok(ProgramShape { parameters, result: self.shape()? })
    }

    pub(super) fn arrow(&mut self) -> Parse<()> {
        self.cursor.skip_space();
        if self.cursor.eat_text("->") { Ok(()) } else { self.unexpected("`->` and a shape") }
    }

    /// ```text
    /// tables := "FileNames" (integer string)* "FunctionNames" (integer string)*
    ///           "FileLocations" (integer row)* "StackFrames" (integer row)*
    /// ```
    fn stack_tables(&mut self) -> Parse<()> {
        if !self.keyword("FileNames") {
            return Ok(());
        }
        let mut tables = StackTables { file_names: self.names()?, ..StackTables::default() };
        self.section("FunctionNames")?;
        tables.function_names = self.names()?;
        self.section("FileLocations")?;
        tables.file_locations = self.rows(&LOCATION_FIELDS)?;
        self.section("StackFrames")?;
        tables.stack_frames = self.rows(&FRAME_FIELDS)?;
        self.module.header.stack_tables = Some(tables);
        Ok(())
    }

    /// Moves over a word of the grammar if it is here.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        self.cursor.skip_space();
        self.cursor.eat_word(keyword)
    }

    fn section(&mut self, keyword: &str) -> Parse<()> {
        if self.keyword(keyword) { Ok(()) } else { self.unexpected(&format!("`{keyword}`")) }
    }

    /// Reads the number of a row. Returns whether another numbered row follows. As in XLA, rows
    /// count from 1, regardless of their numbers.
    fn row_number(&mut self) -> Parse<bool> {
        self.cursor.skip_space();
        let follows = self.cursor.peek().is_ascii_digit();
        if follows {
            self.integer("a row number")?;
        }
        Ok(follows)
    }

    fn names(&mut self) -> Parse<Vec<SmolStr>> {
        let mut names = Vec::new();
        while self.row_number()? {
            names.push(self.string("a name in quotes")?);
        }
        Ok(names)
    }

    /// `row := "{" (word "=" integer)* "}"`, with every field once.
    fn rows<Row: Default>(&mut self, fields: &[Field<Row>]) -> Parse<Vec<Row>> {
        let mut rows = Vec::new();
        while self.row_number()? {
            rows.push(self.row(fields)?);
        }
        Ok(rows)
    }

    fn row<Row: Default>(&mut self, fields: &[Field<Row>]) -> Parse<Row> {
        self.expect(b'{', "`{`")?;
        let mut row = Row::default();
        let mut missing: SmallVec<[&Field<Row>; 6]> = fields.iter().collect();
        while !self.accept(b'}') {
            let Some(at) = missing.iter().position(|(name, _)| self.cursor.eat_word(name)) else {
                return self.row_field_error(&missing);
            };
            self.expect(b'=', "`=`")?;
            let (_, slot) = missing.remove(at);
            *slot(&mut row) = self.integer("an integer")?;
            self.accept(b',');
        }
        if missing.is_empty() { Ok(row) } else { self.row_field_error(&missing) }
    }

    fn row_field_error<Row, T>(&mut self, missing: &[&Field<Row>]) -> Parse<T> {
        let names: Vec<String> = missing.iter().map(|(name, _)| format!("`{name}=`")).collect();
        let expected = if names.is_empty() { "`}`".to_owned() } else { names.join(", ") };
        self.unexpected(&expected)
    }
}
