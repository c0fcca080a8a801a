//! The pages of `bevy_due` whose code needs other crates for Bevy. The programs are in `bin`.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/cookbook/server_and_client.md")]
struct ServerAndClient;
