//! Why a picture cannot be drawn.

/// The error of a function of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The module has no instruction with this name.
    #[error("there is no instruction `{name}`{hint}")]
    NoInstruction {
        /// The name.
        name: String,
        /// A similar name, or what to do.
        hint: String,
    },
    /// The module has no computation with this name.
    #[error("there is no computation `{name}`{hint}")]
    NoComputation {
        /// The name.
        name: String,
        /// A similar name, or what to do.
        hint: String,
    },
    /// The module has no entry computation.
    #[error("the module has no entry computation; name one with --computation")]
    NoEntry,
    /// The file name does not say which form is asked for.
    #[error(
        "cannot tell the form of the picture from the name {0}; let it end in .dot, .svg or .html, or say --emit"
    )]
    UnknownForm(String),
    /// There are too many nodes for the form.
    #[error(
        "the picture has {nodes} nodes, and {form} is drawn for at most {most}; draw the surroundings \
         of an instruction with --around NAME, one computation with --computation NAME, or a page \
         that opens and closes its parts with --emit html"
    )]
    TooLarge {
        /// The form.
        form: &'static str,
        /// The nodes of the picture.
        nodes: usize,
        /// The most nodes of the form.
        most: usize,
    },
    /// A profile is not what `tilewright run --profile --json` writes.
    #[error("this is no profile: {0}; `tilewright run IN --profile --json 2> run.json` writes one")]
    Profile(String),
    /// A profile is of another module.
    #[error("the profile has none of the {0} instructions of this module: it is of another module")]
    OtherProfile(usize),
    /// The layout failed.
    #[error("the picture could not be laid out; write --emit dot or html instead")]
    Layout,
    /// A page could not be written.
    #[error("cannot write the page: {0}")]
    Page(String),
}
