//! Times diagonals, for `benches/diagonal_peer.py`: as views, and by the other
//! route, which moves the two dims to the end, makes three dims of all, and
//! reads the diagonals of the matrices.
//!
//!     cargo run --release -p tilewright-benches --bin time_diagonal -- DIM1 DIM2 OFFSET SIZE...
//!
//! prints a line of JSON for each, with the median time of several rounds.
#![allow(clippy::print_stdout, reason = "a command line tool")]

use std::error::Error;

use tilewright_benches::median_seconds;
use tilewright_interp::views::View;
use tilewright_ir::{ArrayLiteral, Data, ElementType};

const ROUNDS: usize = 15;

struct Diagonal {
    dim1: usize,
    dim2: usize,
    offset: isize,
}

impl Diagonal {
    fn as_view(&self, x: &ArrayLiteral) -> Result<ArrayLiteral, Box<dyn Error>> {
        Ok(View::of(x).diagonal(self.offset, self.dim1, self.dim2)?.to_array()?)
    }

    fn by_shuffle(&self, x: &ArrayLiteral) -> Result<ArrayLiteral, Box<dyn Error>> {
        let rank = x.dims().len();
        let others = (0..rank).filter(|&dim| dim != self.dim1 && dim != self.dim2);
        let order: Vec<usize> = others.chain([self.dim1, self.dim2]).collect();
        let shuffled = View::of(x).transposed(&order)?.to_array()?;
        let (rows, columns) = (x.dims()[self.dim1], x.dims()[self.dim2]);
        let batch = shuffled.dims()[..rank - 2].iter().product();
        let matrices = shuffled.reshape([batch, rows, columns])?;
        Ok(View::of(&matrices).diagonal(self.offset, 1, 2)?.to_array()?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dim1, dim2, offset, sizes @ ..] = arguments.as_slice() else {
        return Err("too few numbers".into());
    };
    let diagonal = Diagonal { dim1: dim1.parse()?, dim2: dim2.parse()?, offset: offset.parse()? };
    let dims = sizes.iter().map(|size| size.parse()).collect::<Result<Vec<i64>, _>>()?;
    let count = dims.iter().product::<i64>();
    let data = (0..count).map(|i| i as f32).collect();
    let x = ArrayLiteral::new(ElementType::F32, dims, Data::F32(data))?;
    let found = diagonal.as_view(&x)?;
    if found.data() != diagonal.by_shuffle(&x)?.data() {
        return Err("the two routes differ".into());
    }
    let view = median_seconds(ROUNDS, || diagonal.as_view(&x));
    let shuffle = median_seconds(ROUNDS, || diagonal.by_shuffle(&x));
    for (what, seconds) in [("view", view), ("shuffle", shuffle)] {
        println!(r#"{{"what": "{what}", "elements": {}, "seconds": {seconds:.9}}}"#, found.len());
    }
    Ok(())
}
