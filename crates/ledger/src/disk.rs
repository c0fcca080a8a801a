//! A disk that is full or hangs now and then: an image of a file system, which needs root on Linux.

use core::time::Duration;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

pub(crate) struct Disk {
    folder: PathBuf,
    state: State,
    until: Instant,
    pub(crate) faults: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Well,
    Full,
    Hangs,
}

impl Disk {
    /// Mounts a small disk at a folder.
    pub(crate) fn mount(folder: &Path) -> io::Result<Self> {
        let image = folder.with_extension("image");
        fs::File::create(&image)?.set_len(256 << 20)?;
        run(Command::new("mkfs.ext4").arg("-q").arg(&image))?;
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
            State::Full => fs::remove_file(self.ballast())?,
            State::Hangs => self.freeze("--unfreeze")?,
        }
        self.state = State::Well;
        Ok(())
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    fn fill(&self) -> io::Result<()> {
        let mut ballast = fs::File::create(self.ballast())?;
        match io::copy(&mut io::repeat(1), &mut ballast) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
            other => other.map(|_| ()),
        }
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
