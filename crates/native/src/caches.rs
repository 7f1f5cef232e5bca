//! The size of the CPU's last cache. Reductions and programs compare their bytes with it.

use std::sync::OnceLock;

/// The bytes of the last cache where the system does not report them.
const USUAL_BYTES: usize = 1 << 25;

/// Returns the bytes of the largest cache of the first CPU, which are read from the system once.
/// They decide how memory is read and written, not which values are computed.
///
/// Source: `Documentation/ABI/testing/sysfs-devices-system-cpu` of Linux.
pub(crate) fn last_cache() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| largest(told_by_system()).unwrap_or(USUAL_BYTES))
}

/// Returns the sizes of the first CPU's caches as Linux reports them, such as `32768K`.
fn told_by_system() -> Vec<String> {
    let caches = 0..if cfg!(all(target_os = "linux", not(miri))) { 8 } else { 0 };
    let size = |n| format!("/sys/devices/system/cpu/cpu0/cache/index{n}/size");
    caches.filter_map(|n| std::fs::read_to_string(size(n)).ok()).collect()
}

/// Returns the largest of `sizes` in bytes; texts that are no sizes are skipped.
fn largest(sizes: Vec<String>) -> Option<usize> {
    let bytes = |size: String| {
        let size = size.trim();
        let number = size.trim_end_matches(['K', 'M', 'G']);
        let times = match size.strip_prefix(number)? {
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            _ => 1,
        };
        number.parse::<usize>().ok()?.checked_mul(times)
    };
    sizes.into_iter().filter_map(bytes).max().filter(|&bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::{largest, last_cache};

    #[test]
    fn sizes_are_read() {
        let of = |sizes: &[&str]| largest(sizes.iter().map(ToString::to_string).collect());
        assert_eq!(of(&["32K\n", "1024K\n", "32768K\n"]), Some(33_554_432));
        assert_eq!(of(&["48K", "2M", "1G"]), Some(1_073_741_824));
        assert_eq!(of(&["512", "K", "-1K", "", "99999999999999999999K"]), Some(512));
        assert_eq!(of(&["18446744073709551615G"]), None);
        assert_eq!(of(&["0K"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_cpu_has_a_cache() {
        assert!(last_cache() > 0);
        assert_eq!(last_cache(), last_cache());
    }
}
