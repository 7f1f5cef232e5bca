//! Rewrites of the state that a loop carries from one iteration to the next.

pub mod dead_elements;
pub mod reshape_out_of_loop;
mod state;
