//! What designers of games expect: the obvious code is right.

mod calls;
mod clocks;
mod effects;
