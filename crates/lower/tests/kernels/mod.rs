//! Kernels of reductions and selections on the machine, against the interpreter, and
//! groups that are no kernel.

mod accuracy;
mod groups;
mod harness;
mod indices;
mod large;
mod patterns;
mod random;
mod reducers;
mod select;
mod strategies;
