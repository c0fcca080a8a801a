//! The rules of a rollback, one by one. `interrupted.rs` rolls games back.

mod mail;
mod rules;
