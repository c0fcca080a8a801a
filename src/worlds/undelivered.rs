//! Sending what a world did not deliver to another world.

use alloc::{borrow::Cow, boxed::Box};

use super::{
    address::{Address, StableKey},
    parcel::{Parcel, Part, RequestId},
};
use crate::message::{Delivery, Letter, RemoteAsker, Role};

impl Letter {
    /// Turns the message into a parcel for another group or another world, for example after the world
    /// that had got it has ended. A request stays open at its asker, who gets the reply of the other world.
    ///
    /// # Errors
    ///
    /// Returns the message if it can't be a parcel: it is not a [packet](Self::packet), or it is a request
    /// or a reply between two entities of the world that has ended.
    ///
    /// # Examples
    ///
    /// A supervisor that gives the work of a world that has panicked to another one:
    ///
    /// ```
    /// use bevy_due::{message::Delivery, worlds::WorldGroups};
    ///
    /// fn pass_on(groups: &mut WorldGroups) {
    ///     for world in groups.ended() {
    ///         for message in world.undelivered {
    ///             match message.into_parcel(world.group.clone(), Delivery::InTurn) {
    ///                 Ok(parcel) => groups.post(parcel).unwrap_or_else(|error| eprintln!("{error}")),
    ///                 Err(message) => eprintln!("{message:?} is lost"),
    ///             }
    ///         }
    ///     }
    /// }
    /// # pass_on(&mut WorldGroups::new());
    /// ```
    pub fn into_parcel(
        self,
        group: impl Into<Cow<'static, str>>,
        delivery: impl Into<Delivery<StableKey>>,
    ) -> Result<Parcel, Box<Self>> {
        let (Some(packet), Some(part)) = (self.packet(), part(self.role())) else {
            return Err(Box::new(self));
        };
        let mut parcel = Parcel::new(group, delivery, packet.clone());
        parcel.part = part;
        Ok(parcel)
    }
}

/// Returns the role in a parcel, if other worlds know the request.
fn part(role: &Role) -> Option<Part> {
    match role {
        Role::Plain => Some(Part::Plain),
        Role::Request(reply_to) => {
            let RemoteAsker {
                group,
                key,
                token,
                number,
            } = reply_to.remote_asker()?.clone();
            let key = StableKey(key);
            Some(Part::Request {
                reply_to: Address { group, key },
                request: RequestId { token, number },
            })
        }
        Role::Reply(request) => {
            let (token, number) = request.name()?;
            Some(Part::Reply(RequestId { token, number }))
        }
    }
}
