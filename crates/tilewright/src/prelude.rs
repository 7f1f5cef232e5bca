//! The items that most programs need, in one line: `use tilewright::prelude::*;`.

pub use tilewright_interp::Limits;
pub use tilewright_ir::ops::contract::DotAttrs;
pub use tilewright_ir::{
    ArrayLiteral, ArrayShape, BuildError, Builder, CompId, Data, Dims, ElementType, InstId,
    Literal, Module, Op, Opcode, Shape, Verified, dims,
};
pub use tilewright_target::Target;

pub use crate::agreement::Agreement;
pub use crate::check::CheckOptions;
pub use crate::error::Error;
pub use crate::module::PrintOptions;
pub use crate::pipeline::{FloatMode, Optimized, Options, PassSelection, Report};
pub use crate::run::RunOptions;
