# Everything that CI runs.
ci:
    bash .ci/run

# What takes too long for every commit.
nightly:
    bash .ci/nightly

# Tests that need only Rust.
test:
    cargo test --workspace

# Random tests with new cases until one fails: just random -p tilewright-stablehlo
random *args:
    while cargo test {{args}}; do :; done

# The documents as a book, in target/book.
book:
    bash .ci/book

# Accept changed snapshots, after reading them.
bless:
    INSTA_UPDATE=always cargo test --workspace

# Wheels for x86-64 and AArch64 (manylinux_2_28) and the source distribution, in target/wheels.
wheels:
    bash .ci/wheels

# The command with its manual, completions and licences as an archive, in target/package.
package:
    bash .ci/package

# The fixtures from real JAX programs.
fixtures:
    .venv/bin/python fixtures/generate.py

# Times of original and rewritten programs through XLA:CPU.
real-effect:
    cargo build --release -p tilewright-cli
    .venv/bin/python benches/real_effect.py

# Hours of random attacks on the numbers of rewrites: just attack --minutes 60 --seed 1
attack *args:
    cargo run --release -p tilewright --example attack -- {{args}}

# Small inputs that take much time or memory: just exhaustion --minutes 60 --seed 1
exhaustion *args:
    cargo build --release -p tilewright-cli
    python3 benches/exhaustion.py {{args}}

# The measured reductions of an engine: just calibrate --engine crates/target/engines/xla-cpu-0.12.toml
calibrate *args:
    cargo build --release -p tilewright-cli
    .venv/bin/python benches/calibrate.py {{args}}

# The same on several versions of jaxlib: just versions --suite wide pullback
versions *args:
    cargo build --release -p tilewright-cli
    python3 benches/versions.py {{args}}

# What the compilers of TPUs and GPUs estimate, without a device; installs them.
devices:
    cargo build --release -p tilewright-cli
    .venv/bin/python -m pytest -q tests/python/test_engines.py
    .venv/bin/python benches/engine_estimate.py --engine tpu-v5e --suite vjp
    .venv/bin/python benches/engine_estimate.py --engine xla-gpu-h100 --suite vjp
    .venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir target/engines/wheel crates/python
    .venv/bin/python benches/engine_door.py --engine tpu-v5e --wheel target/engines/wheel/*.whl
    .venv/bin/python benches/engine_door.py --engine xla-gpu-h100 --wheel target/engines/wheel/*.whl

# Small cases of the native kernels in Miri (nightly Rust with miri and rust-src).
miri:
    cargo +nightly miri test -p tilewright-native --test tests -- fused norms
    RUSTFLAGS='-C target-feature=+avx2,+fma,+bmi2,+f16c' \
        cargo +nightly miri test -p tilewright-native -- levels chain

# The native kernels' tests with a sanitizer (nightly Rust with rust-src): just sanitize thread
sanitize kind:
    RUSTFLAGS='-Z sanitizer={{kind}}' cargo +nightly test -Z build-std --target x86_64-unknown-linux-gnu \
        --target-dir target/sanitize-{{kind}} -p tilewright-native --lib --tests

# The native kernels' tests on an emulated AArch64 CPU. Needs the target of rustup, and Debian's
# packages gcc-aarch64-linux-gnu and qemu-user-static.
aarch64:
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64-static -L /usr/aarch64-linux-gnu' \
        cargo test --target aarch64-unknown-linux-gnu -p tilewright-native
