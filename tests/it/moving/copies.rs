//! Copies of entities as data, from which they continue after a crash.

use bevy_due::{OwnedBy, Timer, timer::TimerStatus};

use super::*;

fn copies(app: &mut App, entities: &[Entity]) -> Vec<Result<MovedEntity, MoveError>> {
    app.world_mut().copy_entities(entities)
}

fn status(app: &mut App, entity: Entity) -> Option<TimerStatus> {
    app.world_mut().with_timers(|timers| timers.get(entity))
}

#[test]
fn a_copy_is_what_a_move_takes_and_changes_nothing() {
    let [mut copied, mut untouched, mut taken] = [zone(), zone(), zone()];
    let mut heroes = Vec::new();
    for app in [&mut copied, &mut untouched, &mut taken] {
        let all = [3, 5, 7].map(|secs| {
            let timer = Timer::every(f64::from(secs));
            let hero = app.world_mut().spawn((timer, ears())).id();
            app.world_mut().spawn((OwnedBy(hero), Timer::after(1.0)));
            hero
        });
        advance_ms(app, 500);
        for (nth, hero) in (1..).zip(all) {
            send(app, hero, nth);
        }
        // This one waits for the next run.
        app.world_mut().spawn((OwnedBy(all[1]), Timer::after(2.0)));
        heroes.push(all);
    }
    let [of_copied, of_untouched, of_taken] = heroes[..] else {
        unreachable!("three worlds");
    };
    let texts = copies(&mut copied, &of_copied).into_iter();
    let texts = texts.map(|copy| ron::to_string(&copy.unwrap()).unwrap());
    for (text, hero) in texts.zip(of_taken) {
        let taken = taken.world_mut().take_entity(hero).unwrap();
        assert_eq!(text, ron::to_string(&taken).unwrap());
    }
    for _ in 0..20 {
        for app in [&mut copied, &mut untouched] {
            advance_ms(app, 400);
        }
        for (one, other) in of_copied.into_iter().zip(of_untouched) {
            let status = [status(&mut copied, one), status(&mut untouched, other)];
            let status = status.map(|status| status.map(|it| (it.remaining, it.count)));
            assert_eq!(status[0], status[1]);
            assert_eq!(heard(&mut copied, one), heard(&mut untouched, other));
        }
    }
}

#[test]
fn entities_continue_from_the_copies_of_any_frame() {
    for crash_at in 0..30 {
        let mut app = zone();
        let mut heroes: Vec<Entity> = (1..=4)
            .map(|nth| {
                let timer = Timer::every(ms(70 * nth)).times(20);
                app.world_mut().spawn((ears(), timer)).id()
            })
            .collect();
        let mut notes = [const { Vec::<u8>::new() }; 4];
        for frame in 0..60 {
            for (nth, &hero) in heroes.iter().enumerate() {
                notes[nth].extend(heard(&mut app, hero));
                send(&mut app, hero, frame as u8);
            }
            if frame == crash_at {
                let copied = copies(&mut app, &heroes);
                let copied = copied.into_iter().map(|copy| through_text(&copy.unwrap()));
                app = zone();
                heroes = copied.map(|copy| put(&mut app, copy, 0)).collect();
            }
            advance_ms(&mut app, 50);
        }
        for (nth, &hero) in heroes.iter().enumerate() {
            notes[nth].extend(heard(&mut app, hero));
            let expected: Vec<u8> = (0..60).collect();
            assert_eq!(notes[nth], expected, "crash at {crash_at}");
            let count = status(&mut app, hero).map(|status| status.count);
            let every = 70 * (nth as u64 + 1);
            // The last firing of the first timer is over.
            let expected = Some(60 * 50 / every).filter(|&count| count < 20);
            assert_eq!(count, expected, "crash at {crash_at}");
        }
    }
}

#[test]
fn an_entity_that_cannot_be_copied_is_an_error_of_its_own() {
    let mut app = zone();
    let world = app.world_mut();
    let good = world.spawn((ears(), Timer::after(1.0))).id();
    let gone = world.spawn_empty().id();
    world.despawn(gone);
    let uncoded = world.spawn(ears()).id();
    world.send(uncoded, Look(1)).unwrap();
    let copied = copies(&mut app, &[good, gone, uncoded, good]);
    let errors: Vec<_> = copied.iter().map(|copy| copy.as_ref().err()).collect();
    assert_eq!(errors[0], None);
    assert_eq!(errors[1], Some(&MoveError::NoSuchEntity(gone)));
    assert_eq!(errors[2], None, "a message that is no data is left out");
    assert_eq!(errors[3], None, "each has its own data");
    let left_out: Vec<_> = copied[2].as_ref().unwrap().left_out().iter().collect();
    assert!(left_out[0].message.ends_with("Look"), "{left_out:?}");
    assert!(copied[0].as_ref().unwrap().left_out().is_empty());
    let moved = app.world_mut().take_entity(uncoded).unwrap_err();
    assert!(matches!(moved, MoveError::Mail(_)), "a move loses nothing");
    let mut bare = App::new();
    assert_eq!(
        copies(&mut bare, &[good])[0].as_ref().err(),
        Some(&MoveError::NoPlugin)
    );
}
