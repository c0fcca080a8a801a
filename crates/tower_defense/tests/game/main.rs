//! Tests of the tower defence. Time moves by hand, so nothing waits.

mod picture;
mod rules;
mod saving;
mod story;
mod support;
