//! Pictures of HLO modules.
//!
//! ```text
//!            draw                  print
//!  Module ─────────► Scene ───┬──────────► dot   for Graphviz
//!  (one, or before            ├──────────► svg   laid out here
//!   and after)                └──────────► html  a page to look through
//! ```
//!
//! - [`picture`]: what is drawn: nodes, edges, and boxes of computations.
//! - [`Scene`]: one picture, or the pictures before and after an optimisation with the notes on it.
//! - [`Subject`]: what to draw: the module, one computation, or the surroundings of an instruction.
//! - [`Emit`]: the forms of a picture.
//! - [`report`](report::report): what an optimisation found and did, as one page.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = "HloModule m\n\nENTRY e {\n  x = f32[2,3] parameter(0)\n  ROOT y = f32[3,2] transpose(x), dimensions={1,0}\n}\n";
//! let module = tilewright::parse(text)?;
//! let options = tilewright_view::Options::new(tilewright::target("tpu-like")?);
//! let scene = tilewright_view::Scene::of(&module, &options)?;
//! let dot = scene.print(tilewright_view::Emit::Dot)?;
//! assert!(dot.starts_with("digraph") && dot.contains("transpose {1,0}"));
//! # Ok(())
//! # }
//! ```

mod build;
mod change;
mod dot;
mod error;
mod focus;
mod html;
mod layout;
pub mod picture;
pub mod report;
mod scene;
mod scopes;
mod svg;
mod words;

pub use error::ViewError;
pub use scene::{Emit, Options, Scene, Side, Subject, Weights};
