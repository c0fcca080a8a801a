//! A script as a test to paste.

use core::fmt;

use crate::{
    op::{Op, Then},
    rules::Rules,
};

/// Prints the reactions as the call that creates them.
impl fmt::Debug for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("then(&[")?;
        for (nth, ops) in self.0.iter().enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            write!(f, "{comma}&{ops:?}")?;
        }
        f.write_str("])")
    }
}

/// Returns the source of a test that plays a script.
pub(crate) fn test(name: &str, rules: Rules, ops: &[Op]) -> String {
    let ops: Vec<String> = ops.iter().map(|op| format!("        {op:?},\n")).collect();
    format!(
        "#[test]\nfn {name}() {{\n    let rules = {rules:?};\n    check(rules, &[\n{}    ]);\n}}\n",
        ops.concat()
    )
}

#[cfg(test)]
mod tests {
    use bevy_due::MissedTicks::*;

    use super::test;
    use crate::{
        op::{Action::*, At::*, Change::*, Done::*, Op::*, Ratio::*, To::*, Topic::*, *},
        play::play,
        rules::TINY,
    };

    /// Returns operations, and their source.
    macro_rules! script {
        ($($op:expr,)*) => {
            (vec![$($op),*], [$(stringify!($op)),*])
        };
    }

    #[rustfmt::skip]
    /// The source of each operation, which compiles, is what is printed. So a printed script is the
    /// script that was played, with all its values.
    #[test]
    fn a_printed_script_is_the_source_of_the_script() {
        let (ops, sources) = script![
            Arm(
                7,
                Spec {
                    delay: 1,
                    since: Some(2),
                    jitter: 3,
                    interval: 4,
                    span: 5,
                    slack: 0,
                    times: 6,
                    missed: Skip,
                    done: Keeps,
                    on: Some(Own(1))
                }
            ),
            SetTimer(
                0,
                1,
                2,
                Spec {
                    delay: 0,
                    since: None,
                    jitter: 0,
                    interval: 0,
                    span: 0,
                    slack: 0,
                    times: 0,
                    missed: Burst,
                    done: ByOwner,
                    on: None
                }
            ),
            Frame(
                12,
                then(&[&[Despawn(3), Panic], &[], &[Change(0, SetClock(Real))]])
            ),
            Act(7, Some(Named)),
            LiveSince(6, 4, 2),
            ManualClock(2),
            AdvanceTo(Own(2), 9),
            Belong(7, Some(0)),
            Clock(1, Virtual, Third),
            Modify(3, Some((1, Double, None))),
            Update(4, -1, Some(Frames)),
            Follow(5, Topics(31)),
            Send(InTurn, Word),
            Ask(
                5,
                One(4),
                Spec {
                    delay: 9,
                    since: None,
                    jitter: 0,
                    interval: 1,
                    span: 0,
                    slack: 0,
                    times: 0,
                    missed: Delay,
                    done: Despawns,
                    on: Some(Fixed)
                }
            ),
            Reply { keep: true },
            Forward(
                Own(1),
                30,
                then(&[&[PauseUpdates(Some(-1)), PauseUpdates(None)]])
            ),
            ForwardToNext(Virtual, then(&[])),
            Snapshot,
            Restore(2),
            Reload(3, then(&[&[Spawn(5)]])),
            Revive(0, 3, then(&[&[Spawn(5)]])),
            Move(0, 2, 3, then(&[&[Spawn(5)]])),
        ];
        let squeeze = |text: &str| text.replace(char::is_whitespace, "");
        for (op, source) in ops.iter().zip(sources) {
            assert_eq!(squeeze(&format!("{op:?}")), squeeze(source));
        }
        let printed = test("pasted", TINY, &ops);
        for source in sources {
            assert!(
                squeeze(&printed).contains(&squeeze(source)),
                "{source} is not in {printed}"
            );
        }
        play(TINY, &ops).expect("both sides should agree");
    }
}
