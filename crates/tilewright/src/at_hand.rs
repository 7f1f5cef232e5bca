//! The engine that compiles programs on this machine.

use std::path::Path;

use tilewright_target::{Target, TargetError};

use crate::error::Error;

/// The files that drivers make for devices, by folder and beginning of the name, before a number; and the
/// engine for these devices.
const DEVICES: [(&str, &str, &str); 3] =
    [("", "nvidia", "xla-gpu-h100"), ("", "accel", "tpu-v5e"), ("vfio", "", "tpu-v5e")];
/// The name that stands for the target at hand.
pub(crate) const AUTO: &str = "auto";
/// The engine of a machine with CPUs alone.
const CPU: &str = "xla-cpu-0.12";

/// The variable that names the target in place of the engine.
const VARIABLE: &str = "TILEWRIGHT_TARGET";

/// Returns the name of the target that `auto` stands for: what the variable `TILEWRIGHT_TARGET` names, or else the
/// engine for this machine's devices.
pub(crate) fn name() -> String {
    let named = std::env::var(VARIABLE).unwrap_or_default();
    if named.is_empty() || named == AUTO { engine_of(Path::new("/dev")).to_owned() } else { named }
}

/// Returns the target that `auto` stands for. Errors name the variable, if there is one.
pub(crate) fn target() -> Result<Target, Error> {
    crate::pipeline::target(&name()).map_err(|error| match error {
        Error::Target(TargetError::Unknown { name, known }) => {
            let name = format!("{name}, which {VARIABLE} names,");
            Error::Target(TargetError::Unknown { name, known })
        }
        other => other,
    })
}

/// Returns the engine for the devices that have files in a folder.
fn engine_of(files: &Path) -> &'static str {
    let is_there = |folder: &str, beginning: &str| {
        let names = std::fs::read_dir(files.join(folder)).into_iter().flatten().flatten();
        names.map(|entry| entry.file_name()).any(|name| {
            let number = name.to_str().and_then(|name| name.strip_prefix(beginning));
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        })
    };
    let found = DEVICES.iter().find(|(folder, beginning, _)| is_there(folder, beginning));
    found.map_or(CPU, |(_, _, engine)| engine)
}

#[cfg(test)]
mod tests {
    use super::{Path, engine_of};

    #[test]
    fn devices_have_an_engine_by_their_files() {
        let of = |files: &[&str]| {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::create_dir(folder.path().join("vfio")).expect("a folder");
            for file in files {
                std::fs::write(folder.path().join(file), "").expect("a file");
            }
            engine_of(folder.path())
        };
        assert_eq!(of(&[]), "xla-cpu-0.12");
        assert_eq!(of(&["nvidiactl", "accelerator", "vfio/vfio"]), "xla-cpu-0.12");
        assert_eq!(of(&["nvidia0", "nvidiactl"]), "xla-gpu-h100");
        assert_eq!(of(&["accel3"]), "tpu-v5e");
        assert_eq!(of(&["vfio/0"]), "tpu-v5e");
        assert_eq!(engine_of(Path::new("/nowhere")), "xla-cpu-0.12");
    }
}
