//! The part of `bevy_dev_tools` that `bevy_remote` needs.
//!
//! `bevy_remote` 0.20 uses that crate for the method `schedule.graph` only. The crate itself depends on
//! audio, shaders and the user interface: two hundred crates, the headers of ALSA on Linux, and Rust
//! 1.97. The inspector has a window in the browser and needs none of them, so it builds this
//! instead. A game that depends on all of Bevy needs no such replacement.

#![forbid(unsafe_code)]

/// What a remote client learns of a schedule.
pub mod schedule_data {
    /// The data as it is sent.
    pub mod serde {
        use core::fmt;

        use bevy_ecs::{
            component::Components,
            schedule::{Schedule, ScheduleBuildMetadata},
        };
        use serde::{Deserialize, Serialize};

        /// The systems of a schedule, without their sets and orderings.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        pub struct ScheduleData {
            /// The name of the schedule.
            pub name: String,
            /// The names of its systems, in an order in which they can run.
            pub systems: Vec<String>,
        }

        impl ScheduleData {
            /// Reads a schedule.
            ///
            /// # Errors
            ///
            /// Fails if the schedule has never run.
            pub fn from_schedule(
                schedule: &Schedule,
                _: &Components,
                _: Option<&ScheduleBuildMetadata>,
            ) -> Result<Self, NeverRun> {
                let systems = schedule.systems().map_err(|_| NeverRun)?;
                Ok(Self {
                    name: format!("{:?}", schedule.label()),
                    systems: systems
                        .map(|(_, system)| system.name().to_string())
                        .collect(),
                })
            }
        }

        /// A schedule has never run, so the order of its systems is not known.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct NeverRun;

        impl fmt::Display for NeverRun {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the schedule has never run")
            }
        }

        impl core::error::Error for NeverRun {}
    }
}
