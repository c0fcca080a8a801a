//! The operations of a script.
//!
//! A script names entities by *slot*. A slot holds the last entity that was spawned there, which may
//! have despawned. All times are in units of [`Rules::unit`](crate::Rules).

use bevy_due::MissedTicks;

/// The number of slots.
pub(crate) const SLOTS: usize = 9;

/// The slot of the timer that fired last. No script spawns an owner there.
pub(crate) const FIRED: Slot = 8;

/// The slots from zero on that own, drive or pause others. An entity only belongs to, and only
/// changes the speed of, an entity in a lower slot.
pub(crate) const OWNERS: usize = 4;

/// The number of snapshots that are kept.
pub(crate) const SNAPSHOTS: usize = 3;

/// The keys that timers can have.
pub(crate) const KEYS: [&str; 2] = ["a", "b"];

pub(crate) type Slot = usize;

/// An operation on the world, between frames or in a handler.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// Spawns an entity, unless the slot has one.
    Spawn(Slot),
    Despawn(Slot),
    /// Inserts or removes `OwnedBy`.
    Belong(Slot, Option<Slot>),
    /// Inserts `OwnedBy` with an owner that does not exist.
    Orphan(Slot),
    /// Inserts or removes `ChildOf`.
    Child(Slot, Option<Slot>),
    /// Inserts or removes `Keyed`.
    Key(Slot, Option<usize>),
    /// Inserts a `Timer`.
    Arm(Slot, Spec),
    /// Removes the `Timer`.
    Disarm(Slot),
    /// Sets a timer of the first slot's entity under a key. Its entity takes the second slot.
    SetTimer(Slot, usize, Slot, Spec),
    /// Refreshes the keyed timer, or sets it as above.
    RefreshTimer(Slot, usize, Slot, Spec),
    CancelKey(Slot, usize),
    CancelAll(Slot),
    Change(Slot, Change),
    ChangeKey(Slot, usize, Change),
    DelayAll(Slot, u64),
    /// Inserts or removes `DespawnAfter`.
    Live(Slot, Option<u64>),
    /// Inserts a `DespawnAfter` with a delay since a time.
    LiveSince(Slot, u64, u64),
    /// Inserts or removes a `TimerAction`.
    Act(Slot, Option<Action>),
    /// Inserts or removes `Paused`.
    Pause(Slot, bool),
    /// Inserts or removes `RunsWhilePaused`.
    RunWhilePaused(Slot, bool),
    /// Inserts or removes `Disabled`.
    Disable(Slot, bool),
    PauseFor(Slot, u64),
    /// Despawns the oldest pause of the entity.
    EndPause(Slot),
    /// Inserts `Pauses` with the entity in the second slot, or removes it.
    Pauses(Slot, Option<Slot>),
    /// Inserts or removes `OnClock`.
    On(Slot, Option<At>),
    /// Inserts a `Clock` with this parent and speed.
    Clock(Slot, At, Ratio),
    /// Inserts a `Clock` that only moves by hand.
    ManualClock(Slot),
    RemoveClock(Slot),
    Speed(At, Ratio),
    PauseClock(At, bool),
    SetParent(Slot, At),
    SetNow(At, u64),
    Advance(At, u64),
    AdvanceTo(At, u64),
    /// Skips time, for which each timer fires at most once.
    SkipTime(At, u64),
    /// Inserts a `SpeedModifier` of the clock in the second slot, perhaps in a group, or removes it.
    Modify(Slot, Option<(Slot, Ratio, Option<usize>)>),
    /// Inserts or removes the marker of the clocks that run only under the condition.
    Hold(Slot, bool),
    /// Sets the condition.
    Condition(bool),
    /// Pauses or resumes Bevy's game time.
    PauseGame(bool),
    /// Inserts an `UpdateComponent` with a priority and a clock.
    Update(Slot, i32, Option<At>),
    StopUpdate(Slot),
    PauseUpdates(Option<i32>),
    /// Starts the random numbers anew.
    Seed(u64),
    /// Inserts a `MessageComponent` that follows these topics.
    Follow(Slot, Topics),
    Unfollow(Slot),
    Send(To, Topic),
    /// Writes a message with Bevy's `MessageWriter`.
    Write,
    /// Makes a request. Its entity takes no slot.
    Ask(Slot, To, Spec),
    /// Despawns the oldest open request of the entity.
    Withdraw(Slot),
    /// Replies to the oldest request that has been heard and is not forgotten. Keeps it, so that
    /// another reply can follow, or forgets it.
    Reply {
        keep: bool,
    },
    /// Panics. In the first place, the handler itself panics, and otherwise its command. Between
    /// frames, it does nothing.
    Panic,
    /// Takes a snapshot. Only between frames.
    Snapshot,
    /// Goes back to one of the last snapshots, from the newest on, if there is one. Only between
    /// frames.
    Restore(usize),
    /// Saves all timers, loads them into a new app, and runs a frame there. Only between frames.
    Reload(u64, Then),
    /// Saves the timers of an entity and of everything it owns, despawns it, loads the timers again,
    /// and runs a frame. Only between frames.
    Revive(Slot, u64, Then),
    /// Moves an entity and everything it owns out of the world and back, and runs a frame. The first
    /// time passes on the way. Nothing that moves keeps an owner that stays. Only between frames.
    Move(Slot, u64, u64, Then),
    /// Runs a frame. Its handlers do what `then` says. Only between frames.
    Frame(u64, Then),
    /// Runs an empty frame, and then fast-forwards a clock. Only between frames.
    Forward(At, u64, Then),
    /// Runs an empty frame, and then fast-forwards a clock to the next deadline. Only between frames.
    ForwardToNext(At, Then),
}

/// A timer to arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) delay: u64,
    pub(crate) since: Option<u64>,
    pub(crate) jitter: u64,
    /// Zero for a one-shot timer.
    pub(crate) interval: u64,
    /// The longest random addition to each interval.
    pub(crate) span: u64,
    pub(crate) slack: u64,
    /// Zero for no limit.
    pub(crate) times: u32,
    pub(crate) missed: MissedTicks,
    pub(crate) done: Done,
    pub(crate) on: Option<At>,
}

/// What happens to the entity after the last firing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Done {
    ByOwner,
    Keeps,
    Despawns,
}

/// A change of an armed timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    PauseTimer,
    ResumeTimer,
    Restart,
    Refresh,
    SetLeft(u32),
    SetInterval(u64),
    SetRemaining(u64),
    Reschedule(u64),
    DelayBy(u64),
    HastenBy(u64),
    SetClock(At),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Action {
    Nothing,
    DespawnTimer,
    DespawnOwner,
    /// A named handler, which does what the script says.
    Named,
}

/// A clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum At {
    Real,
    Virtual,
    Frames,
    Fixed,
    Own(Slot),
}

/// A speed, or a factor on a speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ratio {
    Zero,
    Quarter,
    Third,
    Same,
    Three,
    Double,
}

impl Ratio {
    pub(crate) fn get(self) -> f64 {
        match self {
            Self::Zero => 0.0,
            Self::Quarter => 0.25,
            Self::Third => 1.0 / 3.0,
            Self::Same => 1.0,
            Self::Three => 3.0,
            Self::Double => 2.0,
        }
    }
}

/// The number of topics: packets, and messages of a type.
pub(crate) const TOPICS: usize = 5;

/// What an entity can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Packet0,
    Packet1,
    Word,
    Answer,
    NoReply,
}

pub(crate) const ALL_TOPICS: [Topic; TOPICS] = [
    Topic::Packet0,
    Topic::Packet1,
    Topic::Word,
    Topic::Answer,
    Topic::NoReply,
];

/// A set of topics, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Topics(pub(crate) u8);

impl Topics {
    pub(crate) fn contain(self, topic: Topic) -> bool {
        self.0 & 1 << topic as u8 != 0
    }
}

/// The recipient of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum To {
    One(Slot),
    All,
    InTurn,
}

/// The reactions of the handlers that are called in a frame, in order. Later handlers do nothing.
#[derive(Clone, PartialEq)]
pub(crate) struct Then(pub(crate) Vec<Vec<Op>>);

/// Returns the reactions of handlers.
pub(crate) fn then(reactions: &[&[Op]]) -> Then {
    Then(reactions.iter().map(|ops| ops.to_vec()).collect())
}
