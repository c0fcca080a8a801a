//! The extension trait of [`EntityCommands`].

use alloc::borrow::Cow;
use core::time::Duration;

use bevy_ecs::prelude::*;

use crate::{
    message::{Delivery, Payload, Request, ask},
    owner::OwnedBy,
    timer::{Keyed, Move, Timer, cancel_all, cancel_keyed, delay_all, move_deadline},
};

/// Changes the timers of an entity from a system, and makes requests on its behalf.
///
/// Systems with exclusive access use [`DueEntityWorldMutExt`](crate::DueEntityWorldMutExt).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Boss;
///
/// fn silence(boss: Single<Entity, With<Boss>>, mut commands: Commands) {
///     let mut boss = commands.entity(*boss);
///     boss.cancel_timer("fireball");
///     boss.delay_timers_by(Duration::from_secs(5));
///     boss.set_timer("wake up", Timer::after_secs(5.0)).observe(|_: On<TimerFired>| {});
/// }
/// # bevy_ecs::system::assert_is_system(silence);
/// ```
pub trait DueEntityCommandsExt {
    /// Spawns a timer that belongs to this entity, under a [key](Keyed), and returns the commands
    /// of the timer's entity.
    ///
    /// `timer` is a [`Timer`](crate::Timer), plus any components to spawn with it. The returned
    /// commands are those of the *timer*. A second `set_timer` in the same chain would create a
    /// timer that belongs to this timer and dies with it.
    ///
    /// The earlier timer with this key, if any, is cancelled. If this entity no longer exists when
    /// the commands are applied, the timer never fires and despawns in the next run.
    fn set_timer(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        timer: impl Bundle,
    ) -> EntityCommands<'_>;

    /// Cancels the timer of this entity with this key, if any.
    fn cancel_timer(&mut self, key: impl Into<Cow<'static, str>>) -> &mut Self;

    /// Cancels the timer on this entity and all timers that belong to it.
    ///
    /// A [`DespawnAfter`](crate::DespawnAfter) and open requests are not affected. To cancel only
    /// some timers, cancel them [by key](Self::cancel_timer). Alternatively, give them a marker
    /// component, and despawn the [`Owned`](crate::Owned) entities that carry it.
    fn cancel_timers(&mut self) -> &mut Self;

    /// Moves the deadline of the timer on this entity, as
    /// [`DueEntityWorldMutExt::reschedule`](crate::DueEntityWorldMutExt::reschedule) does.
    ///
    /// If the entity has no armed timer, Bevy's error handler gets a warning.
    fn reschedule(&mut self, deadline: Duration) -> &mut Self;

    /// Delays the timer on this entity by `by`.
    ///
    /// If the entity has no armed timer, Bevy's error handler gets a warning.
    fn delay_by(&mut self, by: Duration) -> &mut Self;

    /// Delays the timer on this entity and all timers that belong to it.
    fn delay_timers_by(&mut self, by: Duration) -> &mut Self;

    /// Makes a request: sends a message, and waits for a reply until the timer fires.
    ///
    /// Every request completes exactly once: this entity gets either the first
    /// [`reply`](crate::MessageContext::reply) or [`NoAnswer`](crate::NoAnswer), both with the
    /// returned [`Request`]. The entity gets neither if it despawns first, or if the world is
    /// dropped. A request without a recipient times out.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{NoAnswer, Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Message)]
    /// struct Price(&'static str);
    /// #[derive(Message)]
    /// struct Coins(u32);
    /// #[derive(Component)]
    /// struct Purse(Option<u32>);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let shop = MessageComponent::new().on(|mut me, price: &Price| -> Result {
    ///     Ok(me.reply(Coins(price.0.len() as u32))?)
    /// });
    /// let shop = app.world_mut().spawn(shop).id();
    /// let customer = MessageComponent::new()
    ///     .on(|mut me, coins: &Coins| {
    ///         me.entity.get_mut::<Purse>().unwrap().0 = Some(coins.0);
    ///     })
    ///     .on(|_, _: &NoAnswer| println!("the shop is closed"));
    /// let customer = app.world_mut().spawn((customer, Purse(None))).id();
    ///
    /// let mut commands = app.world_mut().commands();
    /// commands.entity(customer).ask(shop, Price("sword"), Timer::after_secs(2.0));
    /// app.update(); // Delivers the request.
    /// app.update(); // Delivers the reply.
    /// assert_eq!(app.world().get::<Purse>(customer).unwrap().0, Some(5));
    /// ```
    #[doc(alias("request", "call", "session"))]
    fn ask(&mut self, to: impl Into<Delivery>, payload: impl Payload, until: Timer) -> Request;
}

impl DueEntityCommandsExt for EntityCommands<'_> {
    fn set_timer(
        &mut self,
        key: impl Into<Cow<'static, str>>,
        timer: impl Bundle,
    ) -> EntityCommands<'_> {
        let owner = OwnedBy(self.id());
        let commands = self.commands_mut();
        let timer = commands.spawn((owner, Keyed::new(key), timer)).id();
        commands.entity(timer)
    }

    fn cancel_timer(&mut self, key: impl Into<Cow<'static, str>>) -> &mut Self {
        let (owner, key) = (self.id(), key.into());
        self.commands().queue(move |world: &mut World| {
            cancel_keyed(world, owner, &key);
        });
        self
    }

    fn cancel_timers(&mut self) -> &mut Self {
        let owner = self.id();
        self.commands()
            .queue(move |world: &mut World| cancel_all(world, owner));
        self
    }

    fn reschedule(&mut self, deadline: Duration) -> &mut Self {
        queue_move(self, Move::To(deadline))
    }

    fn delay_by(&mut self, by: Duration) -> &mut Self {
        queue_move(self, Move::By(by))
    }

    fn delay_timers_by(&mut self, by: Duration) -> &mut Self {
        let owner = self.id();
        self.commands()
            .queue(move |world: &mut World| delay_all(world, owner, by));
        self
    }

    fn ask(&mut self, to: impl Into<Delivery>, payload: impl Payload, until: Timer) -> Request {
        ask(self, to.into(), payload, until)
    }
}

fn queue_move<'a, 'b>(
    commands: &'a mut EntityCommands<'b>,
    to: Move,
) -> &'a mut EntityCommands<'b> {
    let entity = commands.id();
    commands.commands().queue(move |world: &mut World| {
        // The timer may have fired before the command runs. This is normal, so only warn.
        move_deadline(world, entity, to).map_err(BevyError::warning)
    });
    commands
}
