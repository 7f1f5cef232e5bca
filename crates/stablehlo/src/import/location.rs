//! Locations as metadata and stack frames.
//!
//! JAX writes the name of an op around a call stack: `"jit(f)/add"(callsite("g"(file) at ...))`.
//! A frame is a name around a place in a file.

use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use tilewright_ir::metadata::{FileLocation, RareMetadata, StackFrame};
use tilewright_ir::{OpMetadata, StackTables};

use crate::mlir::Location;

/// The deepest call stack that is followed.
const MAX_DEPTH: usize = 512;

/// The most parts of a location that are followed: parts may share parts, so that a short text has 2^n of them.
const MOST_PARTS: usize = 1 << 12;

/// The tables of stack frames as they grow.
#[derive(Default)]
pub(super) struct Frames {
    /// How many more parts of the location at hand are followed.
    parts_left: usize,
    tables: StackTables,
    files: FxHashMap<SmolStr, i64>,
    functions: FxHashMap<SmolStr, i64>,
    places: FxHashMap<(i64, i64, u32, u32), i64>,
    frames: FxHashMap<(i64, i64), i64>,
}

/// A frame: the name of the function, and where it is.
struct SourceFrame<'l> {
    function: &'l SmolStr,
    file: &'l SmolStr,
    start: (u32, u32),
    end: (u32, u32),
}

impl Frames {
    /// Returns the tables, unless they are empty.
    pub(super) fn finish(self) -> Option<StackTables> {
        (!self.tables.stack_frames.is_empty()).then_some(self.tables)
    }

    /// Returns the metadata of an op at this location; `None` if it is unknown.
    pub(super) fn metadata(&mut self, location: &Location) -> Option<OpMetadata> {
        if matches!(location, Location::Unknown) {
            return None;
        }
        let (op_name, op_type) = (name(location), op_type(location));
        let mut metadata = OpMetadata { op_name, op_type, ..OpMetadata::default() };
        let mut rest = location;
        while let Location::Name { child, .. } = rest {
            if frame(rest).is_some() {
                break;
            }
            rest = child;
        }
        self.parts_left = MOST_PARTS;
        metadata.stack_frame_id = self.stack(rest, 0, 0);
        if metadata.stack_frame_id == 0 {
            set_source(&mut metadata, rest);
        }
        (metadata != OpMetadata::default()).then_some(metadata)
    }

    /// Adds the frames of a call stack, of which those in `parent` are the outer ones. Returns the
    /// innermost; 0 if there is none.
    fn stack(&mut self, location: &Location, parent: i64, depth: usize) -> i64 {
        let Some(left) = self.parts_left.checked_sub(1).filter(|_| depth <= MAX_DEPTH) else {
            return parent;
        };
        self.parts_left = left;
        if let Some(place) = frame(location) {
            return self.add(&place, parent);
        }
        match location {
            Location::Call { callee, caller } => {
                let caller = self.stack(caller, parent, depth + 1);
                self.stack(callee, caller, depth + 1)
            }
            Location::Name { child, .. } => self.stack(child, parent, depth + 1),
            Location::Fused { parts, .. } => {
                let mut added = parts.iter().map(|part| self.stack(part, parent, depth + 1));
                added.find(|&frame| frame != parent).unwrap_or(parent)
            }
            Location::Unknown | Location::File { .. } => parent,
        }
    }

    fn add(&mut self, place: &SourceFrame<'_>, parent: i64) -> i64 {
        let file = numbered(&mut self.files, &mut self.tables.file_names, place.file);
        let names = &mut self.tables.function_names;
        let function = numbered(&mut self.functions, names, place.function);
        let key = (file, function, place.start.0, place.start.1);
        let locations = &mut self.tables.file_locations;
        let location = *self.places.entry(key).or_insert_with(|| {
            locations.push(FileLocation {
                file_name_id: file,
                function_name_id: function,
                line: place.start.0.into(),
                end_line: place.end.0.into(),
                column: place.start.1.into(),
                end_column: place.end.1.into(),
            });
            length(locations)
        });
        let frames = &mut self.tables.stack_frames;
        *self.frames.entry((location, parent)).or_insert_with(|| {
            // The text has the number of the caller plus one.
            frames.push(StackFrame { file_location_id: location, parent_frame_id: parent + 1 });
            length(frames)
        })
    }
}

fn numbered(
    numbers: &mut FxHashMap<SmolStr, i64>,
    names: &mut Vec<SmolStr>,
    name: &SmolStr,
) -> i64 {
    *numbers.entry(name.clone()).or_insert_with(|| {
        names.push(name.clone());
        length(names)
    })
}

fn length<T>(list: &[T]) -> i64 {
    i64::try_from(list.len()).unwrap_or(i64::MAX)
}

/// Returns the frame that a location is, if it is one.
fn frame(location: &Location) -> Option<SourceFrame<'_>> {
    let Location::Name { name, child } = location else { return None };
    match &**child {
        Location::File { file, start, end } => {
            Some(SourceFrame { function: name, file, start: *start, end: *end })
        }
        _ => None,
    }
}

/// Sets the place in a file of a location without frames: the last one of several.
fn set_source(metadata: &mut OpMetadata, location: &Location) {
    let files = parts(location, fused).filter_map(|part| match part {
        Location::File { file, start, end } => Some((file, start, end)),
        _ => None,
    });
    let Some((file, start, end)) = files.last() else { return };
    metadata.source_file = file.clone();
    metadata.source_line = start.0.into();
    let rare = RareMetadata {
        source_end_line: end.0.into(),
        source_column: start.1.into(),
        source_end_column: end.1.into(),
        ..RareMetadata::default()
    };
    metadata.rare = (rare != RareMetadata::default()).then(|| Box::new(rare));
}

/// The parts of a fused location.
fn fused(location: &Location) -> Vec<&Location> {
    match location {
        Location::Fused { parts, .. } => parts.iter().map(|part| &**part).collect(),
        _ => Vec::new(),
    }
}

/// The name that a location gives an op, if it does.
fn own_name(location: &Location) -> Option<&str> {
    match location {
        Location::Name { name, .. } => Some(before_at(name)).filter(|name| !name.ends_with(':')),
        _ => None,
    }
}

/// The parts of a location that name an op, unless it does.
fn named(location: &Location) -> Vec<&Location> {
    match location {
        Location::Name { child, .. } if own_name(location).is_none() => vec![&**child],
        Location::Call { callee, .. } => vec![&**callee],
        Location::Fused { .. } => fused(location),
        Location::Name { .. } | Location::Unknown | Location::File { .. } => Vec::new(),
    }
}

/// Visits a location and its parts, in order, as long as they are not too many.
fn parts(
    location: &Location,
    within: fn(&Location) -> Vec<&Location>,
) -> impl Iterator<Item = &Location> {
    let mut rest = vec![location];
    let next = move || {
        let location = rest.pop()?;
        rest.extend(within(location).into_iter().rev());
        Some(location)
    };
    std::iter::from_fn(next).take(MOST_PARTS)
}

/// Returns the name of a location: the outermost names, up to an `@`, joined by `;`.
pub(super) fn name(location: &Location) -> SmolStr {
    let names: Vec<&str> = parts(location, named).filter_map(own_name).collect();
    joined(&names)
}

/// Returns the type of the op: a name that ends with a colon.
fn op_type(location: &Location) -> SmolStr {
    let mut rest = location;
    loop {
        rest = match rest {
            Location::Name { name, child } => match before_at(name).strip_suffix(':') {
                Some(kind) => return kind.into(),
                None => child,
            },
            Location::Call { callee, .. } => callee,
            Location::Fused { parts, .. } => match parts.first() {
                Some(first) => first,
                None => return SmolStr::default(),
            },
            Location::Unknown | Location::File { .. } => return SmolStr::default(),
        };
    }
}

fn before_at(name: &str) -> &str {
    name.split('@').next().unwrap_or_default()
}

fn joined(names: &[&str]) -> SmolStr {
    match names {
        [only] => (*only).into(),
        several => several.join(";").into(),
    }
}
