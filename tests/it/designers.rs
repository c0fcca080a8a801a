//! What designers of games expect: the obvious code is right.

mod clocks;
mod effects;
