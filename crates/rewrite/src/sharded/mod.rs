//! Programs for several devices: fewer rounds of communication, and less to exchange.
//!
//! `all_reduce` rewrites what a program itself lets devices combine. All else is about programs that
//! XLA divides; `constraint` leaves out what they say twice.
//!
//! XLA's partitioner makes a collective of every reduce of a divided dim, right where the reduce
//! stands, and one more for each further dim. The passes here write such a reduce in two stages:
//! one *within* devices, one *across* them. The stage across is a small reduce of a dim that has
//! one place per device, so that it can be moved, joined with others, or left out. A constraint
//! between the stages tells XLA how the values lie, and keeps it from merging them.

mod moments;
mod partial;

pub mod all_reduce;
pub mod constraint;
pub mod local_moments;
pub mod local_sums;
