//! Operations, regions and blocks.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use smol_str::SmolStr;

use super::Read;
use super::builtin;
use super::cursor::Cursor;
use super::entries::Entries;
use super::file::{File, section};
use crate::dialect::{self, Layout, Op};
use crate::mlir::{
    Attribute, Attributes, Block, Location, Operation, Program, Region, Span, Type, Value,
};
use crate::vhlo;

/// Regions may be nested this deep.
const MAX_DEPTH: u32 = 64;

/// The parts that an operation has.
mod mask {
    pub(crate) const ATTRIBUTES: u8 = 1;
    pub(crate) const RESULTS: u8 = 2;
    pub(crate) const OPERANDS: u8 = 4;
    pub(crate) const SUCCESSORS: u8 = 8;
    pub(crate) const REGIONS: u8 = 16;
    pub(crate) const USE_ORDERS: u8 = 32;
    pub(crate) const PROPERTIES: u8 = 64;
}

/// The first version in which isolated regions are sections.
const LAZY: u64 = 2;
/// The first version with orders of uses.
const USE_ORDERS: u64 = 3;
/// The first version in which arguments may lack a location.
const OPTIONAL_LOCATIONS: u64 = 4;

/// The values of a region, numbered from `base`. Those of regions inside follow.
struct Frame {
    base: u64,
    end: u64,
    values: Vec<Value>,
}

/// The known facts about the name of an operation.
struct Name {
    name: SmolStr,
    /// The name in StableHLO.
    renamed: SmolStr,
    layouts: Vec<Layout>,
    /// The op of StableHLO that an operation of VHLO is.
    of_vhlo: Option<&'static Op>,
}

struct Reader<'b> {
    entries: Entries<'b>,
    names: Vec<Option<Arc<Name>>>,
    types: Vec<Type>,
    argument_locations: FxHashMap<Value, Arc<Location>>,
    /// The regions around the current operation, up to the first that is isolated.
    frames: Vec<Frame>,
    depth: u32,
}

/// Reads the operations of a file of this size.
pub(super) fn program(file: &File<'_>, size: usize) -> Read<Program> {
    let mut reader = Reader {
        entries: Entries::new(file, size),
        names: file.names.iter().map(|_| None).collect(),
        types: Vec::new(),
        argument_locations: FxHashMap::default(),
        frames: Vec::new(),
        depth: 0,
    };
    if u32::try_from(size).is_err() {
        return Err(file.operations.error("the file is longer than 4 GiB"));
    }
    let mut cursor = file.operations;
    let before = cursor;
    if cursor.varint()? != 2 {
        return Err(before.error("there should be one outermost operation"));
    }
    let module = reader.operation(&mut cursor, "")?;
    let module = module.ok_or_else(|| before.error("the outermost operation is a cast"))?;
    cursor.finish("the operations")?;
    Ok(Program { module, values: reader.types, argument_locations: reader.argument_locations })
}

impl<'b> Reader<'b> {
    fn version(&self) -> u64 {
        self.entries.file.version
    }

    /// Takes an operation in a region of an operation of the name `parent`. `None`: it is a cast
    /// between types of VHLO and of StableHLO, which are the same here.
    fn operation(&mut self, cursor: &mut Cursor<'b>, parent: &str) -> Read<Option<Operation>> {
        let before = *cursor;
        let (name, registered) = self.name(cursor)?;
        let parts = cursor.byte()?;
        let has = |part: u8| parts & part != 0;
        let location = self.entries.location(cursor)?;
        let mut attributes = Attributes::new();
        if has(mask::ATTRIBUTES) {
            attributes = self.dictionary(cursor)?;
        }
        if has(mask::PROPERTIES) {
            let mut properties = self.properties(cursor, &name, registered)?;
            properties.append(&mut attributes);
            attributes = properties;
        }
        let types = if has(mask::RESULTS) { self.entries.types(cursor)? } else { Vec::new() };
        let operands = if has(mask::OPERANDS) { self.operands(cursor)? } else { SmallVec::new() };
        if has(mask::SUCCESSORS) {
            let error = before.error("operations with successors cannot be read");
            return Err(error.help("a region of StableHLO has one block"));
        }
        if has(mask::USE_ORDERS) {
            skip_use_orders(cursor, types.len())?;
        }
        if self.is_same_cast(&name, &operands, &types) {
            let values = self.frames.last_mut().map(|frame| &mut frame.values);
            values.into_iter().for_each(|values| values.extend_from_slice(&operands));
            return Ok(None);
        }
        let (name, attributes) = rename(&before, &name, attributes, parent)?;
        let attributes = builtin::distinct(&before, attributes)?;
        let regions = if has(mask::REGIONS) { self.regions(cursor, &name)? } else { Vec::new() };
        let results = types.into_iter().map(|ty| self.define(ty)).collect();
        let place = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Ok(Some(Operation {
            name,
            operands,
            results,
            attributes,
            regions,
            location: Some(location),
            span: Span { start: place(before.offset()), end: place(cursor.offset()) },
        }))
    }

    fn is_same_cast(&self, name: &Name, operands: &[Value], types: &[Type]) -> bool {
        let known = |value: &Value| self.types.get(value.0 as usize);
        name.name == "builtin.unrealized_conversion_cast"
            && operands.len() == types.len()
            && operands.iter().zip(types).all(|(operand, ty)| known(operand) == Some(ty))
    }

    /// Takes the number of a name, and returns whether MLIR knew it.
    fn name(&mut self, cursor: &mut Cursor<'b>) -> Read<(Arc<Name>, bool)> {
        let before = *cursor;
        let number = cursor.varint()?;
        let missing = || before.error(format!("there is no name {number} of an operation"));
        let index = usize::try_from(number).map_err(|_| missing())?;
        let slot = self.names.get_mut(index).ok_or_else(missing)?;
        let known = self.entries.file.names.get(index).ok_or_else(missing)?;
        let name = slot.get_or_insert_with(|| Arc::new(name_of(&known.name)));
        Ok((Arc::clone(name), known.registered))
    }

    fn dictionary(&mut self, cursor: &mut Cursor<'b>) -> Read<Attributes> {
        let before = *cursor;
        match self.entries.attribute(cursor)? {
            Attribute::Dictionary(attributes) => Ok(attributes),
            _ => Err(before.error("the attributes of an operation should be a dictionary")),
        }
    }

    /// Takes the number of properties.
    fn properties(
        &mut self,
        cursor: &mut Cursor<'b>,
        name: &Name,
        registered: bool,
    ) -> Read<Attributes> {
        let before = *cursor;
        let number = cursor.varint()?;
        let known = usize::try_from(number).ok();
        let known = known.and_then(|index| self.entries.file.properties.get(index)).copied();
        let Some(encoding) = known else {
            return Err(before.error(format!("there are no properties {number}")));
        };
        if !registered {
            return self.dictionary(&mut encoding.clone());
        }
        let mut error = None;
        for layout in &name.layouts {
            let mut attempt = encoding;
            match self.with_layout(&mut attempt, layout) {
                Ok(attributes) if attempt.at_end() => return Ok(attributes),
                Ok(_) => {}
                Err(other) => error = error.or(Some(other)),
            }
        }
        if encoding.at_end() {
            return Ok(Attributes::new());
        }
        let unknown = || {
            let name = &name.name;
            let error = encoding.error(format!("the properties of `{name}` cannot be read"));
            error.help("another version of MLIR may have written them; write a portable artifact")
        };
        Err(error.unwrap_or_else(unknown))
    }

    fn with_layout(&mut self, cursor: &mut Cursor<'b>, layout: &Layout) -> Read<Attributes> {
        let mut attributes = Attributes::new();
        for (name, optional) in layout {
            let value = match optional {
                true => self.entries.optional_attribute(cursor)?,
                false => Some(self.entries.attribute(cursor)?),
            };
            attributes.extend(value.map(|value| (SmolStr::new_static(name), value)));
        }
        Ok(attributes)
    }

    fn operands(&mut self, cursor: &mut Cursor<'b>) -> Read<SmallVec<[Value; 4]>> {
        let count = cursor.count("operands")?;
        let mut operands = SmallVec::with_capacity(count);
        for _ in 0..count {
            let before = *cursor;
            let number = cursor.varint()?;
            let frame = self.frames.iter().rev().find(|frame| frame.base <= number);
            let value = frame.and_then(|frame| {
                let index = usize::try_from(number - frame.base).ok()?;
                frame.values.get(index).copied()
            });
            let missing = || before.error(format!("there is no value {number} here yet"));
            operands.push(value.ok_or_else(missing)?);
        }
        Ok(operands)
    }

    /// Makes a value of the innermost region.
    fn define(&mut self, ty: Type) -> Value {
        // There are fewer values than bytes, and at most 4 GiB.
        let value = Value(u32::try_from(self.types.len()).unwrap_or(u32::MAX));
        self.types.push(ty);
        if let Some(frame) = self.frames.last_mut() {
            frame.values.push(value);
        }
        value
    }

    fn regions(&mut self, cursor: &mut Cursor<'b>, parent: &str) -> Read<Vec<Region>> {
        let before = *cursor;
        let (count, isolated) = cursor.flagged()?;
        let count = cursor.payable(count, "regions")?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(before.error("regions are nested too deeply"));
        }
        let regions = match isolated {
            true => {
                let outer = std::mem::take(&mut self.frames);
                let regions = self.isolated(cursor, count, parent)?;
                self.frames = outer;
                regions
            }
            false => (0..count).map(|_| self.region(cursor, parent)).collect::<Read<_>>()?,
        };
        self.depth -= 1;
        Ok(regions)
    }

    /// Takes regions that do not see the values around them.
    fn isolated(
        &mut self,
        cursor: &mut Cursor<'b>,
        count: usize,
        parent: &str,
    ) -> Read<Vec<Region>> {
        if self.version() < LAZY {
            return (0..count).map(|_| self.region(cursor, parent)).collect();
        }
        let before = *cursor;
        let (number, mut part) = section(cursor)?;
        /// The number of a section of operations.
        const OPERATIONS: usize = 4;
        if number != OPERATIONS {
            return Err(before.error("isolated regions should be a section of operations"));
        }
        let regions = (0..count).map(|_| self.region(&mut part, parent)).collect::<Read<_>>()?;
        part.finish("the regions")?;
        Ok(regions)
    }

    fn region(&mut self, cursor: &mut Cursor<'b>, parent: &str) -> Read<Region> {
        let count = cursor.count("blocks")?;
        if count == 0 {
            return Ok(Region::default());
        }
        let before = *cursor;
        let values = cursor.varint()?;
        let base = self.frames.last().map_or(0, |frame| frame.end);
        let end = base.checked_add(values);
        let end = end.ok_or_else(|| before.error("a region has too many values"))?;
        self.frames.push(Frame { base, end, values: Vec::new() });
        let mut blocks = Vec::new();
        for _ in 0..count {
            blocks.push(self.block(cursor, parent)?);
        }
        let frame = self.frames.pop();
        let defined = frame.map_or(0, |frame| frame.values.len());
        if defined as u64 != values {
            let message = format!("a region has {defined} values, but {values} were announced");
            return Err(before.error(message));
        }
        Ok(Region { blocks })
    }

    fn block(&mut self, cursor: &mut Cursor<'b>, parent: &str) -> Read<Block> {
        let (count, has_arguments) = cursor.flagged()?;
        let count = cursor.payable(count, "operations")?;
        let arguments = if has_arguments { self.arguments(cursor)? } else { Vec::new() };
        let mut operations = Vec::new();
        for _ in 0..count {
            operations.extend(self.operation(cursor, parent)?);
        }
        Ok(Block { arguments, operations })
    }

    fn arguments(&mut self, cursor: &mut Cursor<'b>) -> Read<Vec<Value>> {
        let count = cursor.count("arguments")?;
        let mut arguments = Vec::with_capacity(count);
        for _ in 0..count {
            let before = *cursor;
            let (ty, located) = match self.version() < OPTIONAL_LOCATIONS {
                true => (cursor.varint()?, true),
                false => cursor.flagged()?,
            };
            let ty = self.entries.type_at(ty, &before)?;
            let value = self.define(ty);
            if located {
                let location = self.entries.location(cursor)?;
                if *location != Location::Unknown {
                    self.argument_locations.insert(value, location);
                }
            }
            arguments.push(value);
        }
        if self.version() >= USE_ORDERS && cursor.byte()? & mask::USE_ORDERS != 0 {
            skip_use_orders(cursor, count)?;
        }
        Ok(arguments)
    }
}

fn name_of(name: &SmolStr) -> Name {
    let versioned = name.strip_prefix("vhlo.").and_then(dialect::of_vhlo);
    let (renamed, layouts) = match versioned {
        Some((op, version)) => {
            let names = op.names_of(version).into_iter().map(|(name, _)| (name, false));
            (SmolStr::new_static(op.name), vec![names.collect()])
        }
        None => (name.clone(), dialect::op(name).map(Op::layouts).unwrap_or_default()),
    };
    Name { name: name.clone(), renamed, layouts, of_vhlo: versioned.map(|(op, _)| op) }
}

/// Returns the name in StableHLO and the attributes there.
fn rename(
    at: &Cursor<'_>,
    name: &Name,
    attributes: Attributes,
    parent: &str,
) -> Read<(SmolStr, Attributes)> {
    let Some(op) = name.of_vhlo else { return Ok((name.renamed.clone(), attributes)) };
    let attributes = vhlo::upgrade(op, attributes)
        .map_err(|message| at.error(format!("`{}`: {message}", name.name)))?;
    let renamed = match name.renamed.as_str() {
        "stablehlo.return" if parent == "func.func" => SmolStr::new_static("func.return"),
        _ => name.renamed.clone(),
    };
    Ok((renamed, attributes))
}

/// Takes the orders of the uses of some values, which mean nothing to a program.
fn skip_use_orders(cursor: &mut Cursor<'_>, values: usize) -> Read<()> {
    let orders = if values == 1 { 1 } else { cursor.count("orders of uses")? };
    for _ in 0..orders {
        if values != 1 {
            cursor.varint()?;
        }
        let (count, _) = cursor.flagged()?;
        for _ in 0..cursor.payable(count, "uses")? {
            cursor.varint()?;
        }
    }
    Ok(())
}
