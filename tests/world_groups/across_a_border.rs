//! A stand-in for a messaging engine between processes. Its members are worlds that know nothing
//! about each other, and exchange only text.

use std::{collections::HashMap, thread::JoinHandle};

use bevy_due::{Address, Link, MessageSender, SendError};
use serde::{Deserialize, Serialize};

use super::*;

/// A frame of the wire protocol.
#[derive(Serialize, Deserialize)]
enum Frame {
    Join { group: String },
    Bind(StableKey),
    Unbind(StableKey),
    Parcel(Parcel),
    Leave,
}

/// The wire to the broker, which carries the number of a member and a frame as text.
type Wire = Sender<(usize, String)>;

/// A world's link to the broker.
struct ByteLink {
    member: usize,
    wire: Mutex<Wire>,
}

impl ByteLink {
    fn put(&self, frame: &Frame) -> bool {
        let text = ron::to_string(frame).unwrap();
        self.wire.lock().unwrap().send((self.member, text)).is_ok()
    }
}

impl Link for ByteLink {
    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        let frame = Frame::Parcel(parcel);
        if self.put(&frame) {
            return Ok(());
        }
        let Frame::Parcel(parcel) = frame else {
            unreachable!();
        };
        let reason = RefusalReason::UnknownGroup;
        Err(Refused { parcel, reason })
    }

    fn bind(&self, address: &Address) {
        self.put(&Frame::Bind(address.key));
    }

    fn unbind(&self, address: &Address) {
        self.put(&Frame::Unbind(address.key));
    }
}

impl Drop for ByteLink {
    fn drop(&mut self) {
        self.put(&Frame::Leave);
    }
}

/// Passes parcels between the members, on its own thread.
#[derive(Default)]
struct Broker {
    members: HashMap<usize, Member>,
    keys: HashMap<(String, StableKey), usize>,
    turn: usize,
}

struct Member {
    group: String,
    /// The wire to the member.
    wire: Sender<String>,
}

impl Broker {
    fn run(
        mut self,
        wires: &Mutex<HashMap<usize, Sender<String>>>,
        from: &Receiver<(usize, String)>,
    ) {
        for (member, text) in from {
            let group = self.members.get(&member).map(|member| member.group.clone());
            match (ron::from_str(&text).unwrap(), group) {
                (Frame::Join { group }, _) => {
                    let wire = wires.lock().unwrap().remove(&member).unwrap();
                    self.members.insert(member, Member { group, wire });
                }
                (Frame::Bind(key), Some(group)) => {
                    self.keys.insert((group, key), member);
                }
                (Frame::Unbind(key), Some(group)) => {
                    self.keys.remove(&(group, key));
                }
                (Frame::Parcel(parcel), _) => self.pass_on(&parcel),
                (Frame::Leave, _) => {
                    self.members.remove(&member);
                }
                (Frame::Bind(_) | Frame::Unbind(_), None) => panic!("who is {member}?"),
            }
        }
    }

    fn pass_on(&mut self, parcel: &Parcel) {
        let mut of_group: Vec<_> = self
            .members
            .iter()
            .filter(|(_, member)| member.group == parcel.group)
            .map(|(&member, _)| member)
            .collect();
        of_group.sort();
        let to = match parcel.delivery {
            Delivery::All => of_group,
            Delivery::InTurn => {
                self.turn += 1;
                of_group
                    .get(self.turn % of_group.len().max(1))
                    .into_iter()
                    .copied()
                    .collect()
            }
            Delivery::To(key) => {
                let key = (parcel.group.to_string(), key);
                self.keys.get(&key).into_iter().copied().collect()
            }
        };
        for member in to {
            let text = ron::to_string(parcel).unwrap();
            self.members[&member].wire.send(text).ok();
        }
    }
}

/// Worlds that run as if in different processes.
struct Processes {
    to_broker: Wire,
    wires: Arc<Mutex<HashMap<usize, Sender<String>>>>,
    broker: JoinHandle<()>,
    worlds: Vec<(Sender<()>, JoinHandle<()>)>,
}

impl Processes {
    fn new() -> Self {
        let (to_broker, from_members) = mpsc::channel();
        let wires = Arc::default();
        let all_wires = Arc::clone(&wires);
        let broker = thread::spawn(move || {
            Broker::default().run(&all_wires, &from_members);
        });
        Self {
            to_broker,
            wires,
            broker,
            worlds: Vec::new(),
        }
    }

    fn start(&mut self, group: &'static str, build: impl FnOnce(&mut App) + Send + 'static) {
        let member = self.worlds.len();
        let (to_member, from_broker) = mpsc::channel();
        self.wires.lock().unwrap().insert(member, to_member);
        let wire = Mutex::new(self.to_broker.clone());
        let (stop, stopped) = mpsc::channel::<()>();
        let (start, started) = mpsc::channel();
        let world = thread::spawn(move || {
            let mut app = App::new();
            app.add_plugins((TimePlugin, DuePlugin::default()));
            let link = ByteLink { member, wire };
            link.put(&Frame::Join {
                group: group.into(),
            });
            app.insert_resource(WorldLink::new(group, link));
            build(&mut app);
            let sender = app.world_mut().message_sender();
            let ears = thread::spawn(move || listen(&from_broker, &sender));
            start.send(()).unwrap();
            while stopped.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
                app.update();
                thread::yield_now();
            }
            drop(app);
            ears.join().unwrap();
        });
        next(&started);
        self.worlds.push((stop, world));
    }

    fn stop(self) {
        for (stop, world) in self.worlds {
            drop(stop);
            world.join().unwrap();
        }
        drop(self.to_broker);
        self.broker.join().unwrap();
    }
}

/// Passes the parcels from a wire to a world, until the wire is closed.
fn listen(wire: &Receiver<String>, sender: &MessageSender) {
    for text in wire {
        let parcel = ron::from_str(&text).unwrap();
        match sender.receive(parcel) {
            Ok(()) | Err(SendError::Closed(_)) => {}
            Err(SendError::Full(_)) => panic!("there should be room"),
        }
    }
}

const COUNTED: StableKey = StableKey(1);
const CUSTOMER: StableKey = StableKey(2);

/// Builds a world that doubles numbers. It sends each result to the customers twice, and then as
/// the reply to the request.
fn calculator(app: &mut App) {
    let answer = |mut me: MessageContext, question: &Packet| -> Result {
        let twice = 2 * read(question);
        me.commands.post(say("customers", Delivery::All, twice));
        me.commands.post(say("customers", COUNTED, twice));
        Ok(me.reply(number(ANSWER, twice))?)
    };
    app.world_mut()
        .spawn(MessageComponent::new().on_packet(QUESTION, answer));
}

/// Builds worlds that make ten requests, one after the other. They then report the sum of the
/// messages received and the sum of the replies.
fn customer(report: &Sender<[u32; 2]>) -> impl Fn(&mut App) + Send + Sync + 'static + use<> {
    #[derive(Component, Default)]
    struct Heard([u32; 2]);

    fn ask(customer: &mut EntityCommands, what: u32) {
        let question = Parcel::new("calculators", Delivery::InTurn, number(QUESTION, what));
        customer.ask_world(question, Timer::after_secs(3600.0));
    }

    let report = report.clone();
    move |app| {
        let report = report.clone();
        let count = |mut me: MessageContext, said: &Packet| {
            me.entity.get_mut::<Heard>().unwrap().0[0] += read(said);
        };
        let counter = MessageComponent::new().on_packet(SAY, count);
        app.world_mut().spawn((COUNTED, Heard::default(), counter));
        let ask_next = move |mut me: MessageContext, answer: &Packet| {
            let mut heard = me.entity.get_mut::<Heard>().unwrap();
            heard.0[1] += read(answer);
            if read(answer) == 20 {
                let answers = heard.0[1];
                let report = report.clone();
                me.commands.queue(move |world: &mut World| {
                    let mut all = world.query::<(&StableKey, &Heard)>();
                    let mut all = all.iter(world);
                    let (_, said) = all.find(|(key, _)| **key == COUNTED).unwrap();
                    report.send([said.0[0], answers]).ok();
                });
            } else {
                let mut customer = me.commands.entity(me.entity.id());
                ask(&mut customer, read(answer) / 2 + 1);
            }
        };
        let customer = MessageComponent::new().on_packet(ANSWER, ask_next);
        app.world_mut()
            .spawn((CUSTOMER, Heard::default(), customer));
        let ask_first = |world: &mut World| {
            let mut all = world.query::<(Entity, &StableKey)>();
            let mut all = all.iter(world);
            let (customer, _) = all.find(|(_, key)| **key == CUSTOMER).unwrap();
            ask(&mut world.commands().entity(customer), 1);
        };
        app.add_systems(Startup, ask_first);
    }
}

/// The sums that a customer reports. Each result arrives twice before its reply, because the
/// messages of a sender stay in order.
const ALL_HEARD: [u32; 2] = [2 * 110, 110];

#[test]
fn worlds_joined_by_text_behave_like_threads() {
    let (report, reports) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start_worlds("calculators", 2, calculator).unwrap();
    groups
        .start_worlds("customers", 1, customer(&report))
        .unwrap();
    assert_eq!(next(&reports), ALL_HEARD);
    end_well(&groups.stop());

    let (report, reports) = mpsc::channel();
    let mut processes = Processes::new();
    processes.start("calculators", calculator);
    processes.start("calculators", calculator);
    processes.start("customers", customer(&report));
    assert_eq!(next(&reports), ALL_HEARD);
    processes.stop();
}
