# Everything that CI runs.
ci:
    bash .ci/run

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

# The same on several versions of jaxlib: just versions --suite wide pullback
versions *args:
    cargo build --release -p tilewright-cli
    python3 benches/versions.py {{args}}
