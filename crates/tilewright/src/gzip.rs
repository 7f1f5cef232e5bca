//! Modules in gzip files.

use std::io::{self, Read as _};

use flate2::read::MultiGzDecoder;

use crate::error::Error;
use crate::format;
use crate::module::Loaded;

/// The most bytes that a file may hold.
const LIMIT: u64 = 1 << 30;

pub(crate) fn is_gzip(content: &[u8]) -> bool {
    content.starts_with(&[0x1f, 0x8b])
}

/// Reads the module in a gzip file.
pub(crate) fn load(name: &str, bytes: &[u8]) -> Result<Loaded, Error> {
    let content = decompress(bytes, LIMIT);
    // Files within files would be a bomb again.
    let content = content
        .and_then(|content| if is_gzip(&content) { Err(NESTED.to_owned()) } else { Ok(content) });
    match content {
        Ok(content) => format::read(name, content),
        Err(problem) => Err(Error::Gzip { name: name.to_owned(), problem }),
    }
}

const NESTED: &str = "it holds another gzip file; decompress it once";

/// Returns what a file holds. It is decompressed twice, so that no more memory is taken than is
/// needed, and none for what is too large.
fn decompress(bytes: &[u8], limit: u64) -> Result<Vec<u8>, String> {
    let damaged = |error| format!("its gzip data is damaged, or the end is missing: {error}");
    let mut decoder = MultiGzDecoder::new(bytes).take(limit.saturating_add(1));
    let size = io::copy(&mut decoder, &mut io::sink()).map_err(damaged)?;
    if size > limit {
        return Err(format!(
            "it holds more than {limit} bytes, the most that are decompressed; \
             if it is to be trusted, decompress it with gunzip"
        ));
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    MultiGzDecoder::new(bytes).read_to_end(&mut content).map_err(damaged)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::Write as _;

    use super::*;

    fn compressed(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_a_file_may_hold_is_bounded() {
        let bytes = compressed(&[0; 1000]);
        assert_eq!(decompress(&bytes, 1000).unwrap().len(), 1000);
        let error = decompress(&bytes, 999).unwrap_err();
        assert!(error.starts_with("it holds more than 999 bytes"), "{error}");
        // A bomb costs no more than the limit.
        let bomb = compressed(&vec![0; 1 << 24]);
        assert!(bomb.len() < 20_000 && decompress(&bomb, 1 << 10).is_err());
    }

    #[test]
    fn damaged_and_nested_files_are_errors() {
        let bytes = compressed(b"HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n");
        assert!(load("m.gz", &bytes).is_ok());
        for end in 2..bytes.len() {
            let error = load("m.gz", &bytes[..end]).unwrap_err().to_string();
            assert!(error.starts_with("m.gz: its gzip data is damaged"), "{end}: {error}");
        }
        let error = load("m.gz", &compressed(&bytes)).unwrap_err().to_string();
        assert_eq!(error, "m.gz: it holds another gzip file; decompress it once");
    }
}
