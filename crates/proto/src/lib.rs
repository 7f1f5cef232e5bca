//! XLA's binary form of HLO, `HloModuleProto`, in and out.
//!
//! ```
//! use tilewright_proto::{decode, encode, looks_like_proto};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = "HloModule m
//! ENTRY main {
//!   x = f32[2] parameter(0)
//!   ROOT y = f32[2] negate(x)
//! }";
//! let bytes = encode(&tilewright_text::parse(text)?.module)?;
//! assert!(looks_like_proto(&bytes));
//! let module = decode(&bytes)?;
//! assert_eq!(module.instruction_count(), 2);
//! let error = decode(&bytes[..40]).unwrap_err();
//! assert!(error.help.contains("damaged"));
//! # Ok(())
//! # }
//! ```
//!
//! - `proto/hlo.proto`: the messages, as far as the ir can hold them.
//! - `decode`, `encode`: modules, computations, instructions, attributes; each
//!   file has a twin on the other side.
//! - `shape`, `literal`, `sharding`, `devices`, `metadata`, `words`: the parts of both, in both
//!   directions.
//! - `residue`: carries fields that the schema does not know.
//! - `wire`: messages, field by field.
//! - `form`: which message bytes are; `text`: messages in protobuf's text format; `profile`: those
//!   in profiles.
//!
//! `docs/proto.md` lists what only text or only proto can express.

mod decode;
mod devices;
mod encode;
mod error;
mod form;
mod generated;
mod literal;
mod loss;
mod metadata;
mod profile;
mod residue;
mod shape;
mod sharding;
mod text;
mod wire;
mod words;

pub use decode::{Recording, decode, decode_recording};
pub use encode::{encode, encode_hlo_proto};
pub use error::ProtoError;
pub use form::looks_like_proto;
pub use loss::{lost_in_proto, lost_in_text};
pub use profile::{ProfiledModule, looks_like_profile, modules_of_profile};
pub use sharding::decode_sharding;
pub use text::{TextProtoError, encode_text_proto, looks_like_text_proto};
