//! Builds messages by hand, and has other helpers of several tests.

#![allow(dead_code, reason = "each test takes what it needs")]

use tilewright_ir::Module;
use tilewright_testkit::fixture::fixtures;

/// A message, field by field.
#[derive(Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn int(mut self, number: u64, value: i64) -> Self {
        self.varint(number << 3);
        self.varint(value as u64);
        self
    }

    pub(crate) fn bytes(mut self, number: u64, bytes: &[u8]) -> Self {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, number: u64, text: &str) -> Self {
        self.bytes(number, text.as_bytes())
    }

    pub(crate) fn message(self, number: u64, inner: &Self) -> Self {
        self.bytes(number, &inner.0)
    }

    pub(crate) fn ints(self, number: u64, values: &[i64]) -> Self {
        let mut packed = Self::new();
        values.iter().for_each(|&value| packed.varint(value as u64));
        self.message(number, &packed)
    }
}

/// A field: its number, its content if it has a length, and all its bytes.
pub(crate) type Field<'a> = (u32, Option<&'a [u8]>, &'a [u8]);

/// Returns the fields of a message.
pub(crate) fn fields(message: &[u8]) -> Vec<Field<'_>> {
    let varint = |at: &mut usize| {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = message[*at];
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    let (mut found, mut at) = (Vec::new(), 0);
    while at < message.len() {
        let start = at;
        let key = varint(&mut at);
        let mut payload = None;
        match key & 7 {
            0 => drop(varint(&mut at)),
            1 => at += 8,
            5 => at += 4,
            _ => {
                let length = varint(&mut at) as usize;
                payload = Some(&message[at..at + length]);
                at += length;
            }
        }
        found.push(((key >> 3) as u32, payload, &message[start..at]));
    }
    found
}

pub(crate) const F32: i64 = 11;

/// Returns an array, row major.
pub(crate) fn shape(element: i64, dims: &[i64]) -> Message {
    let order: Vec<i64> = (0..dims.len() as i64).rev().collect();
    let layout = Message::new().ints(1, &order).int(16, 1);
    Message::new().int(2, element).ints(3, dims).message(5, &layout)
}

/// Returns an instruction with name, opcode, `f32[2]` and id.
pub(crate) fn instruction(name: &str, opcode: &str, id: i64) -> Message {
    Message::new().text(1, name).text(2, opcode).message(3, &shape(F32, &[2])).int(35, id)
}

/// Returns a computation of these instructions whose root is the last id.
pub(crate) fn computation(name: &str, id: i64, root: i64, instructions: &[Message]) -> Message {
    let mut computation = Message::new().text(1, name);
    for instruction in instructions {
        computation = computation.message(2, instruction);
    }
    computation.int(5, id).int(6, root)
}

/// Returns a module of these computations whose entry is the one with id 0.
pub(crate) fn module(computations: &[Message]) -> Message {
    let mut module = Message::new().text(1, "m").text(2, "main");
    for computation in computations {
        module = module.message(3, computation);
    }
    module
}

/// Returns a module of one computation.
pub(crate) fn main_of(root: i64, instructions: &[Message]) -> Vec<u8> {
    module(&[computation("main", 0, root, instructions)]).0
}

/// `x` is a parameter with id 0.
pub(crate) fn parameter() -> Message {
    instruction("x", "parameter", 0)
}

/// Returns the modules of fixtures, without those whose constants were left out.
pub(crate) fn modules(folders: &[&str]) -> Vec<(String, Module)> {
    let mut found = Vec::new();
    for folder in folders {
        for fixture in fixtures(folder).expect("fixtures") {
            let text = fixture.text().expect("a file");
            if text.contains("constant({...})") {
                continue;
            }
            let module = tilewright_text::parse(&text).expect("HLO text").module;
            found.push((format!("{folder}/{}", fixture.name), module));
        }
    }
    found
}

pub(crate) fn print(module: &Module) -> String {
    let options =
        tilewright_text::PrintOptions::new().with_padding(tilewright_text::LayoutPadding::Keep);
    tilewright_text::print(module, &options).expect("text")
}
