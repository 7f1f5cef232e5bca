//! Runs the binary and inspects the outcome.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The outcome of a run of the binary.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The same, if all went well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Returns the outcome if the run failed with this code, gave the reason on stderr, wrote
    /// nothing to stdout and did not panic.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        assert!(!self.stderr.is_empty(), "no word on stderr");
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.stdout, "");
        self
    }

    /// Returns the outcome if stderr contains this text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no {text:?} in:\n{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn stdout_json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}:\n{}", self.stdout))
    }

    #[track_caller]
    pub(crate) fn stderr_json(&self) -> Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("{e}:\n{}", self.stderr))
    }
}

/// Runs the binary with nothing on stdin.
#[track_caller]
pub(crate) fn tilewright<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> Done {
    with_stdin(args, b"")
}

/// Runs the binary with this on stdin.
#[track_caller]
pub(crate) fn with_stdin<A: AsRef<std::ffi::OsStr>>(
    args: impl IntoIterator<Item = A>,
    stdin: &[u8],
) -> Done {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // It may fail before it has read everything.
    let feeder = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Done {
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Returns the binary, for which `auto` stands for one target on every machine.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.env("TILEWRIGHT_TARGET", "tpu-like");
    command
}

/// Returns a fixture that JAX made.
pub(crate) fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/models").join(name)
}

/// Returns a group norm, whose reshapes are worth rewriting.
pub(crate) fn group_norm() -> PathBuf {
    model("group_norm_nhwc.hlo")
}

/// A module of `x + addend`; the addend distinguishes modules.
pub(crate) fn add_constant(addend: &str) -> String {
    format!(
        "HloModule shifted

ENTRY main {{
  x = f32[2,3] parameter(0)
  c = f32[] constant({addend})
  b = f32[2,3] broadcast(c), dimensions={{}}
  ROOT y = f32[2,3] add(x, b)
}}
"
    )
}

/// Returns a folder that vanishes, with a file in it.
pub(crate) fn file(name: &str, contents: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, contents).unwrap();
    (folder, path)
}

/// The keys of a JSON object, in the order written.
#[track_caller]
pub(crate) fn assert_keys(value: &Value, keys: &[&str]) {
    let object = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    for key in keys {
        assert!(object.contains_key(*key), "no key {key:?} in {value}");
    }
    assert_eq!(object.len(), keys.len(), "more keys than {keys:?} in {value}");
}
