//! Whole-pipeline tests live in `tests/`; there is no library here.
