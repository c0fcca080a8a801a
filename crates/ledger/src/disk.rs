//! A disk that is full or hangs now and then: a file with an XFS. It needs Linux, root and `mkfs.xfs`.

use core::time::Duration;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

/// The file of the shard.
pub(crate) const FILE: &str = "shard.redb";

pub(crate) struct Disk {
    folder: PathBuf,
    pub(crate) state: State,
    until: Instant,
    pub(crate) faults: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Well,
    Full,
    Hangs,
}

impl Disk {
    /// Mounts a small disk at a folder.
    pub(crate) fn mount(folder: &Path) -> io::Result<Self> {
        let image = folder.with_extension("image");
        // The smallest that XFS takes.
        fs::File::create(&image)?.set_len(300 << 20)?;
        run(Command::new("mkfs.xfs").arg("-q").arg(&image))?;
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(folder))?;
        Ok(Self {
            folder: folder.into(),
            state: State::Well,
            until: Instant::now() + Duration::from_secs(5),
            faults: 0,
        })
    }

    /// Changes its state when the time has come.
    pub(crate) fn step(&mut self) -> io::Result<()> {
        if self.until > Instant::now() {
            return Ok(());
        }
        match self.state {
            State::Well => {
                self.faults += 1;
                self.state = [State::Full, State::Hangs][(self.faults % 2) as usize];
                if self.state == State::Hangs {
                    self.freeze("--freeze")?;
                } else {
                    self.fill()?;
                }
            }
            _ => self.mend()?,
        }
        // The world ends after ten seconds.
        self.until = Instant::now() + Duration::from_millis(fastrand::u64(1000..15_000));
        Ok(())
    }

    pub(crate) fn mend(&mut self) -> io::Result<()> {
        match self.state {
            State::Well => {}
            State::Full => fs::remove_dir_all(self.ballast())?,
            State::Hangs => self.freeze("--unfreeze")?,
        }
        self.state = State::Well;
        Ok(())
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Takes all space. The file shares its blocks with a copy, so that it needs space for each change.
    fn fill(&self) -> io::Result<()> {
        let ballast = self.ballast();
        fs::create_dir_all(&ballast)?;
        let mut copy = Command::new("cp");
        copy.arg("--reflink=always")
            .arg(self.folder.join(FILE))
            .arg(&ballast);
        run(&mut copy)?;
        for (nth, size) in (14..29).rev().map(|bits| 1 << bits).enumerate() {
            let file = ballast.join(nth.to_string());
            // What does not fit is smaller.
            run(Command::new("fallocate")
                .args(["-l", &size.to_string()])
                .arg(file))
            .ok();
        }
        Ok(())
    }

    fn freeze(&self, how: &str) -> io::Result<()> {
        run(Command::new("fsfreeze").arg(how).arg(&self.folder))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.mend().ok();
        run(Command::new("umount").arg("--lazy").arg(&self.folder)).ok();
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            let error = format!("{command:?} failed: {why}. `--disk` needs root");
            Err(io::Error::other(error))
        }
    }
}
