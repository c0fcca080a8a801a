//! What zones cost, by their number.

use bevy_ecs::error::Result;

use crate::{
    cluster::{Cluster, ENTITIES, Shape, Step, entity},
    fit::print_line,
    wire::Traffic,
};

/// The figures of clusters of several sizes, for the lines through them.
#[derive(Default)]
struct Figures {
    question: Vec<(f64, f64)>,
    moved: Vec<(f64, f64)>,
    held: Vec<(f64, f64)>,
}

pub(crate) fn print(sizes: &[u64], star: u64) -> Result {
    println!("Zones in a process each, all joined, with {ENTITIES} entities each:");
    let mut all = Figures::default();
    for &size in sizes {
        print_one(size, Shape::All, &mut all)?;
    }
    print_line("bytes of a question, x other zones", &all.question, 999.0);
    print_line("bytes of a move, x other zones", &all.moved, 999.0);
    print_line("bytes held in a zone, x other zones", &all.held, 999.0);
    println!("One zone, joined with all others:");
    print_one(star, Shape::Star, &mut all)
}

fn print_one(size: u64, shape: Shape, all: &mut Figures) -> Result {
    let mut cluster = Cluster::start(size, shape)?;
    let last = size - 1;
    let (from, to) = (entity(0, 0), entity(last, 0));
    let cold = cluster.step(|it| it.mail(0, from, to))?;
    let warm = cluster.step(|it| it.mail(0, from, to))?;
    let moving = cluster.step(|it| it.send(0, entity(0, 1), last))?;
    let to_all = cluster.step(Cluster::mail_to_all)?;
    print_step(size, "a letter to an unknown zone", &cold);
    print_step(size, "a letter to a known one", &warm);
    print_step(size, "a move", &moving);
    print_step(size, "a letter to each other zone", &to_all);
    let rest = cluster.rest()?;
    let held = cluster.end();
    let silent = Cluster::start(size, shape)?.end();
    let others = last as f64;
    println!(
        "{size:4} zones: a frame at rest takes {rest:.1?}; {:.0} B held per other zone",
        (held - silent) as f64 / others,
    );
    let question = cold.traffic.bytes - warm.traffic.bytes;
    all.question.push((others, question as f64));
    all.moved.push((others, moving.traffic.bytes as f64));
    all.held.push((others, (held - silent) as f64));
    Ok(())
}

fn print_step(size: u64, what: &str, step: &Step) {
    let Traffic {
        bytes,
        batches,
        frames,
        ..
    } = step.traffic;
    println!(
        "{size:4} zones: {what}: {bytes} B in {batches} batches with {frames} parcels and changes of keys; {} B in {} \
         syncs to the journals; {} frames",
        step.written, step.syncs, step.frames
    );
}
