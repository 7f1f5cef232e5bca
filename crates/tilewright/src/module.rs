//! Reading and writing modules.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_ir::{ArrayShape, Module, Shape, Verified, verify};
pub use tilewright_proto::Recording;
use tilewright_text::SourceMap;
pub use tilewright_text::{Form, LayoutPadding, PrintOptions};

use crate::error::Error;
use crate::mlir::{MlirStyle, encode_stablehlo, print_stablehlo};
use crate::{folder, format};

/// A text with its origin.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name in messages: the file name or `<stdin>`.
    pub name: String,
    /// The whole text; empty if the module was not HLO text.
    pub text: Arc<str>,
}

/// A module with its source.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The module.
    pub module: Verified,
    /// The text it was read from.
    pub source: Source,
    /// The positions of its instructions in the text.
    pub spans: SourceMap,
    /// The recorded values of a run, if the file is a snapshot with values.
    pub recording: Option<Recording>,
    /// How the module was chosen, where its file or folder has several.
    pub notes: Vec<String>,
    /// How long the verification took; `None` if the module was verified while it was imported.
    pub verify_time: Option<Duration>,
}

/// Reads the module in a file.
///
/// # Errors
/// Returns an error if the file cannot be read, has no format that is read here, or the module
/// does not verify.
pub fn load(path: impl AsRef<Path>) -> Result<Verified, Error> {
    Ok(load_file(path.as_ref())?.module)
}

/// Reads the module in a text.
///
/// ```
/// # fn main() -> Result<(), tilewright::Error> {
/// let module = tilewright::parse(
///     "HloModule double
///      ENTRY main {
///        x = f32[2,3] parameter(0)
///        ROOT y = f32[2,3] add(x, x)
///      }",
/// )?;
/// assert_eq!(module.instruction_count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns an error if it is neither HLO text nor a text proto, or the module does not verify.
pub fn parse(text: &str) -> Result<Verified, Error> {
    Ok(load_text("<text>", text)?.module)
}

/// Reads the module in a file and keeps its text for messages. If the path is a folder that XLA
/// dumped modules into, this is the largest module before optimisation.
///
/// # Errors
/// Returns an error if the file cannot be read, has no format that is read here, or the module
/// does not verify; or if a folder has several modules of similar size.
pub fn load_file(path: &Path) -> Result<Loaded, Error> {
    if path.is_dir() {
        return folder::load(path);
    }
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error| Error::read(&*name, error))?;
    load_bytes(&name, bytes)
}

/// Reads the module in bytes; the format is detected from the content: HLO text, a proto, its
/// text form, a profile, StableHLO in MLIR's text, or one of these in a gzip file. `name` is used in messages.
///
/// # Errors
/// Returns an error if they have none of these formats, or the module does not verify.
pub fn load_bytes(name: &str, bytes: Vec<u8>) -> Result<Loaded, Error> {
    format::read(name, bytes)
}

/// Reads the module in an `HloModuleProto`, `HloProto`, `HloSnapshot` or
/// `HloUnoptimizedSnapshot`. `name` is used in messages.
///
/// # Errors
/// Returns an error if it is none of them, or the module does not verify.
pub fn load_proto(name: &str, bytes: &[u8]) -> Result<Loaded, Error> {
    let source = Source { name: name.to_owned(), text: Arc::from("") };
    let damaged = |error| Error::Proto { name: name.to_owned(), error };
    let module = tilewright_proto::decode(bytes).map_err(damaged)?;
    let recording = tilewright_proto::decode_recording(bytes).map_err(damaged)?;
    verified(module, source, SourceMap::default(), recording)
}

/// Reads the module in a text: HLO, or the text form of a proto. `name` is used in messages.
///
/// # Errors
/// Returns an error if it is neither, or the module does not verify.
pub fn load_text(name: &str, text: impl Into<Arc<str>>) -> Result<Loaded, Error> {
    format::read_text(name, text.into())
}

/// Reads the module in HLO text.
pub(crate) fn load_hlo(name: &str, text: Arc<str>) -> Result<Loaded, Error> {
    let source = Source { name: name.to_owned(), text };
    match tilewright_text::parse(&source.text) {
        Ok(parsed) => verified(parsed.module, source, parsed.spans, None),
        Err(errors) => Err(Error::Syntax { source_text: source, errors }),
    }
}

/// Reads the module in the text form of a proto.
pub(crate) fn load_text_proto(name: &str, text: Arc<str>) -> Result<Loaded, Error> {
    match tilewright_proto::encode_text_proto(&text) {
        Ok(bytes) => load_proto(name, &bytes),
        Err(error) => {
            let source_text = Source { name: name.to_owned(), text };
            Err(Error::TextProto { source_text, error })
        }
    }
}

fn verified(
    module: Module,
    source: Source,
    spans: SourceMap,
    recording: Option<Recording>,
) -> Result<Loaded, Error> {
    let start = Instant::now();
    match verify(module) {
        Ok(module) => {
            let verify_time = Some(start.elapsed());
            Ok(Loaded { module, source, spans, recording, notes: Vec::new(), verify_time })
        }
        Err(rejected) => {
            Err(Error::Rejected { source_text: source, spans: Box::new(spans), rejected })
        }
    }
}

/// The formats in which a module is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// HLO text.
    #[default]
    Hlo,
    /// `HloModuleProto`.
    Proto,
    /// StableHLO in MLIR's text.
    Stablehlo,
    /// StableHLO in MLIR's text, each operation in its generic form.
    StablehloGeneric,
    /// StableHLO as a portable artifact, in MLIR's bytecode.
    StablehloBytecode,
}

impl Emit {
    /// The format for the name of a file: proto for `.pb` or similar endings, otherwise text.
    ///
    /// # Errors
    /// [`Error::OutputForm`] if the ending is that of a format that cannot be written.
    pub fn of_path(path: &Path) -> Result<Self, Error> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let what = match extension.to_ascii_lowercase().as_str() {
            "pb" | "binpb" | "proto" => return Ok(Self::Proto),
            "pbtxt" | "textproto" => "text proto",
            "mlir" | "stablehlo" => return Ok(Self::Stablehlo),
            "mlirbc" => return Ok(Self::StablehloBytecode),
            "gz" => "gzip",
            _ => return Ok(Self::Hlo),
        };
        Err(Error::OutputForm { path: path.to_owned(), what })
    }
}

/// Writes a module in a format.
///
/// # Errors
/// Returns an error if the format cannot express a part of the module.
pub fn write(module: &Module, emit: Emit, options: &PrintOptions) -> Result<Vec<u8>, Error> {
    match emit {
        Emit::Hlo => Ok(print(module, options)?.into_bytes()),
        Emit::Proto => {
            if options.padding != LayoutPadding::Keep {
                refuse_padding(module)?;
            }
            encode(module)
        }
        Emit::Stablehlo | Emit::StablehloGeneric => {
            let is_generic = emit == Emit::StablehloGeneric;
            let has_locations = options.form == Form::Default;
            Ok(print_stablehlo(module, MlirStyle { is_generic, has_locations })?.into_bytes())
        }
        Emit::StablehloBytecode => encode_stablehlo(module),
    }
}

/// Returns the parts of a module that its written form cannot express and that readers need:
/// one line for each, empty for nearly every module. See `docs/proto.md`.
pub fn losses(module: &Module, emit: Emit) -> Vec<String> {
    let (form, losses) = match emit {
        Emit::Hlo => ("text", tilewright_proto::lost_in_text(module)),
        Emit::Proto => ("proto", tilewright_proto::lost_in_proto(module)),
        Emit::Stablehlo | Emit::StablehloGeneric | Emit::StablehloBytecode => {
            return tilewright_stablehlo::lost(module);
        }
    };
    let told = losses.iter().map(|loss| format!("{form} cannot say {loss}; it is left out"));
    told.collect()
}

/// Writes a module as `HloModuleProto`, which XLA accepts. `docs/proto.md` lists the parts that
/// only text can express.
///
/// # Errors
/// Returns an error if proto cannot express a part of the module.
pub fn encode(module: &Module) -> Result<Vec<u8>, Error> {
    tilewright_proto::encode(module).map_err(Error::Encode)
}

fn refuse_padding(module: &Module) -> Result<(), Error> {
    for &computation in module.computations() {
        for id in module.instructions(computation) {
            let mut arrays = module.shape(id).leaves().into_iter().filter_map(Shape::as_array);
            let padded = |array: &ArrayShape| {
                array.layout.as_ref().is_some_and(|layout| layout.padding.is_some())
            };
            if arrays.any(padded) {
                return Err(Error::Padding(module.name_of(id).to_owned()));
            }
        }
    }
    Ok(())
}

/// Writes a module as HLO text. XLA's parser accepts it, if the options are the default.
///
/// ```
/// use tilewright::{Form, PrintOptions};
///
/// # fn main() -> Result<(), tilewright::Error> {
/// let module = tilewright::parse("HloModule m\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}")?;
/// let text = tilewright::print(&module, &PrintOptions::default())?;
/// assert!(text.contains("ROOT %x = f32[2] parameter(0)"));
/// let short = tilewright::print(&module, &PrintOptions::new().with_form(Form::Short))?;
/// assert!(short.contains("ROOT x = f32[2] parameter(0)"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns an error if text with these options cannot express a part of the module.
pub fn print(module: &Module, options: &PrintOptions) -> Result<String, Error> {
    Ok(tilewright_text::print(module, options)?)
}
