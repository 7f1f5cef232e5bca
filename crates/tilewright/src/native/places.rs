//! Reduces of pairs to the first places of extrema.

use tilewright_ir::{
    ArrayLiteral, Data, ElementType, InstId, Literal, NativeCall, NativeFold, Verified,
};
use tilewright_native::{Error, Extremum, Number, Pool, View, place};
use tilewright_rewrite::backend::native_calls::arg_kernel;

/// Returns the kernel for a reduce of pairs that is computed here.
pub(super) fn call(module: &Verified, id: InstId) -> Option<NativeCall> {
    let array = module.array_shape(*module.operands(id).first()?)?;
    // The extremum of nothing is the init.
    let has_elements = array.is_static() && !array.dims().contains(&0);
    arg_kernel(module, id).filter(|_| has_elements)
}

/// Finds the places, and the elements there.
pub(super) fn reduced(
    module: &Verified,
    id: InstId,
    call: &NativeCall,
    operands: &[Literal],
    pool: &dyn Pool,
) -> Result<Literal, String> {
    let array = operands.first().and_then(Literal::as_array).ok_or("an operand is no array")?;
    let shapes = module.shape(id).leaves();
    let results: Vec<_> = shapes.into_iter().filter_map(tilewright_ir::Shape::as_array).collect();
    let &[elements, places] = results.as_slice() else { return Err("no pairs".to_owned()) };
    let of_array = ExtremumSearch { array, call, pool };
    let found = match array.data() {
        Data::F16(data) => of_array.places(data),
        Data::BF16(data) => of_array.places(data),
        Data::F32(data) => of_array.places(data),
        Data::F64(data) => of_array.places(data),
        Data::S8(data) => of_array.places(data),
        Data::S16(data) => of_array.places(data),
        Data::S32(data) => of_array.places(data),
        Data::S64(data) => of_array.places(data),
        Data::U8(data) => of_array.places(data),
        Data::U16(data) => of_array.places(data),
        Data::U32(data) => of_array.places(data),
        Data::U64(data) => of_array.places(data),
        _ => return Err("places of another type".to_owned()),
    };
    let found = found.map_err(|error| error.to_string())?;
    let there = of_array.elements(&found).ok_or("a place beyond the array")?;
    let numbers = match places.element_type {
        ElementType::S64 => Data::S64(found),
        _ => Data::S32(found.iter().filter_map(|&place| i32::try_from(place).ok()).collect()),
    };
    let literal = |shape: &tilewright_ir::ArrayShape, data| {
        let array = ArrayLiteral::new(shape.element_type, shape.dims().iter().copied(), data);
        array.map(Literal::Array).map_err(|error| error.to_string())
    };
    Ok(Literal::Tuple(vec![literal(elements, there)?, literal(places, numbers)?]))
}

/// The search of an array.
struct ExtremumSearch<'a> {
    array: &'a ArrayLiteral,
    call: &'a NativeCall,
    pool: &'a dyn Pool,
}

impl ExtremumSearch<'_> {
    fn dims(&self) -> Vec<usize> {
        self.array.dims().iter().filter_map(|&dim| usize::try_from(dim).ok()).collect()
    }

    fn places<T: Number>(&self, data: &[T]) -> Result<Vec<i64>, Error> {
        let (dims, axes) = (self.dims(), &self.call.axes);
        let view = View::row_major(data, &dims)?;
        let of = match self.call.fold {
            NativeFold::ArgMin => Extremum::Min,
            _ => Extremum::Max,
        };
        Ok(place(&view, axes, of, self.pool)?.data)
    }

    /// The elements at places along the axis.
    fn elements(&self, places: &[i64]) -> Option<Data> {
        let (dims, axis) = (self.dims(), usize::try_from(*self.call.axes.first()?).ok()?);
        let len = *dims.get(axis)?;
        let inner: usize = dims.get(axis + 1..)?.iter().product();
        let at = |(number, &place): (usize, &i64)| {
            let place = usize::try_from(place).ok().filter(|&place| place < len)?;
            Some((number / inner * len + place) * inner + number % inner)
        };
        let places: Option<Vec<usize>> = places.iter().enumerate().map(at).collect();
        Some(self.array.data().gather(places?.into_iter()))
    }
}
