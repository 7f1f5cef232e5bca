//! The parts that only one form, or a few, have.

use super::super::{attribute, elements, list};
use super::form::{FormState, integers, numbered, word_of};
use super::{Fit, Label, Printer, Unfit};
use crate::dialect::{Own, Types};
use crate::mlir::{
    Attribute, DenseArray, DenseElements, Elements, Operation, Scalar, Type, value_of,
};

impl<'p> Printer<'p> {
    pub(super) fn own(&mut self, own: Own, state: &mut FormState<'p>) -> Fit {
        match own {
            Own::Constant => self.constant(state),
            Own::SliceRanges => self.slice_ranges(state.operation),
            Own::DotDims => self.dot_dims(state.operation),
            Own::Precision => self.precision(state.operation),
            Own::Convolution => self.convolution(state.operation),
            Own::ReducedFormat => self.reduced_format(state.operation),
            // MLIR writes no regions here.
            Own::CompositeRegions => Ok(()),
            Own::Scan => self.scan(state),
            Own::GeneratorState => {
                state.has_types = true;
                Ok(())
            }
            Own::LabelledRegion => self.labelled_region(state),
            Own::ReductionKind => self.reduction_kind(state.operation),
            Own::OperandsOrNone => {
                match std::mem::take(&mut state.operands) {
                    [] => self.out.push_str("()"),
                    operands => self.values(operands),
                }
                // Without operands there are no types.
                state.has_types |= state.operation.results.is_empty();
                Ok(())
            }
            Own::Module | Own::Function | Own::Reduce | Own::While => self.whole(own, state),
        }
    }

    /// All of an operation after its name.
    fn whole(&mut self, own: Own, state: &mut FormState<'p>) -> Fit {
        (state.operands, state.has_types, state.has_regions) = (&[], true, true);
        match own {
            Own::Module => self.module(state.operation, state.depth),
            Own::Function => self.function(state.operation, state.depth),
            Own::Reduce => self.reduce(state.operation, state.depth),
            _ => self.while_loop(state.operation, state.depth),
        }
    }

    /// `{attributes} dense<...> : type`.
    fn constant(&mut self, state: &mut FormState<'p>) -> Fit {
        let operation = state.operation;
        let value = operation.attribute("value").ok_or(Unfit)?;
        let ty = match value {
            Attribute::Dense(dense) => &*dense.ty,
            Attribute::Resource { ty, .. } => &**ty,
            _ => return Err(Unfit),
        };
        match operation.results.as_slice() {
            [result] if self.type_of(*result) == ty => {}
            _ => return Err(Unfit),
        }
        // The space is here already.
        let rest = super::form::rest(operation, |name| name == "value");
        if !rest.is_empty() {
            attribute::dictionary_of(&mut self.out, &rest, 0);
            self.out.push(' ');
        }
        attribute::push(&mut self.out, value, 0);
        state.has_types = true;
        Ok(())
    }

    /// `[0:4:2, 1:3]`.
    fn slice_ranges(&mut self, operation: &Operation) -> Fit {
        let starts = list_of(operation, "start_indices")?;
        let limits = list_of(operation, "limit_indices")?;
        let strides = list_of(operation, "strides")?;
        if starts.len() != limits.len() || starts.len() != strides.len() {
            return Err(Unfit);
        }
        self.out.push('[');
        let ranges = starts.iter().zip(limits).zip(strides);
        list(&mut self.out, ranges, |out, ((start, limit), stride)| {
            out.push_str(&format!("{start}:{limit}"));
            if *stride != 1 {
                out.push_str(&format!(":{stride}"));
            }
        });
        self.out.push(']');
        Ok(())
    }

    /// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
    fn dot_dims(&mut self, operation: &Operation) -> Fit {
        let attribute = operation.attribute("dot_dimension_numbers");
        let Some(Attribute::Dialect(dims)) = attribute else { return Err(Unfit) };
        let of = |name: &str| match value_of(&dims.parameters, name) {
            Some(Attribute::DenseArray(DenseArray::I64(values))) => Ok(values.as_slice()),
            None => Ok(&[][..]),
            Some(_) => Err(Unfit),
        };
        let batching = (of("lhs_batching_dimensions")?, of("rhs_batching_dimensions")?);
        let contracting = (of("lhs_contracting_dimensions")?, of("rhs_contracting_dimensions")?);
        if dims.name != "dot" || !operation.name.starts_with(dims.dialect.as_str()) {
            return Err(Unfit);
        }
        if batching != (&[], &[]) {
            self.out.push_str("batching_dims = ");
            integers(&mut self.out, batching.0);
            self.out.push_str(" x ");
            integers(&mut self.out, batching.1);
            self.out.push_str(", ");
        }
        self.out.push_str("contracting_dims = ");
        integers(&mut self.out, contracting.0);
        self.out.push_str(" x ");
        integers(&mut self.out, contracting.1);
        Ok(())
    }

    /// `, precision = [DEFAULT, DEFAULT], algorithm = <...>`.
    fn precision(&mut self, operation: &Operation) -> Fit {
        let dialect = operation.name.split('.').next().unwrap_or_default();
        if let Some(precision) = operation.attribute("precision_config") {
            let Attribute::Array(items) = precision else { return Err(Unfit) };
            let words = items.iter().map(|item| match item {
                Attribute::Dialect(item) => word_of(item, dialect, "precision"),
                _ => Err(Unfit),
            });
            let words = words.collect::<Result<Vec<_>, _>>()?;
            self.out.push_str(", precision = [");
            list(&mut self.out, words, String::push_str);
            self.out.push(']');
        }
        if let Some(algorithm) = operation.attribute("algorithm") {
            let mut text = String::new();
            attribute::push(&mut text, algorithm, 0);
            let prefix = format!("#{dialect}.dot_algorithm");
            let rest = text.strip_prefix(&prefix).filter(|rest| rest.starts_with('<'));
            self.out.push_str(", algorithm = ");
            self.out.push_str(rest.ok_or(Unfit)?);
        }
        Ok(())
    }

    /// `dim_numbers = ..., window = {stride = [1], pad = [[0, 0]]}`.
    fn convolution(&mut self, operation: &Operation) -> Fit {
        let dims = operation.attribute("dimension_numbers");
        let Some(Attribute::Dialect(dims)) = dims else { return Err(Unfit) };
        if dims.name != "conv" || !operation.name.starts_with(dims.dialect.as_str()) {
            return Err(Unfit);
        }
        self.out.push_str("dim_numbers = ");
        elements::convolution(&mut self.out, &dims.parameters);
        self.out.push_str(", window = {");
        let words = [
            ("stride", "window_strides"),
            ("pad", "padding"),
            ("lhs_dilate", "lhs_dilation"),
            ("rhs_dilate", "rhs_dilation"),
            ("reverse", "window_reversal"),
        ];
        let mut separator = "";
        for (word, name) in words {
            let Some(value) = operation.attribute(name) else { continue };
            self.out.push_str(&format!("{separator}{word} = ["));
            separator = ", ";
            match value {
                Attribute::DenseArray(DenseArray::I64(values)) if word.len() > 3 => {
                    list(&mut self.out, values, |out, value| out.push_str(&value.to_string()));
                }
                Attribute::DenseArray(DenseArray::Bool(values)) if word == "reverse" => {
                    list(&mut self.out, values, |out, value| out.push_str(&value.to_string()));
                }
                Attribute::Dense(padding) if word == "pad" => {
                    let rows = padding_rows(padding)?;
                    list(&mut self.out, rows, |out, [low, high]| {
                        out.push_str(&format!("[{low}, {high}]"));
                    });
                }
                _ => return Err(Unfit),
            }
            self.out.push(']');
        }
        self.out.push('}');
        Ok(())
    }

    /// `e5m10`.
    fn reduced_format(&mut self, operation: &Operation) -> Fit {
        let bits = |name| match operation.attribute(name) {
            Some(Attribute::Integer(value, _)) => u16::try_from(*value).map_err(|_| Unfit),
            _ => Err(Unfit),
        };
        let (exponent, mantissa) = (bits("exponent_bits")?, bits("mantissa_bits")?);
        self.out.push_str(&format!("e{exponent}m{mantissa}"));
        Ok(())
    }

    /// `(%a) inits (%b) dimension=0  attributes {...} {region} : type`.
    fn scan(&mut self, state: &mut FormState<'p>) -> Fit {
        let operation = state.operation;
        let (inputs, _) = scan_sizes(operation).ok_or(Unfit)?;
        let (inputs, inits) = state.operands.split_at_checked(inputs).ok_or(Unfit)?;
        let dimension = operation.attribute("dimension");
        let Some(Attribute::Integer(dimension, _)) = dimension else { return Err(Unfit) };
        let [region] = operation.regions.as_slice() else { return Err(Unfit) };
        // There is no space before the bracket.
        self.out.pop();
        self.out.push('(');
        self.values(inputs);
        self.out.push_str(") inits (");
        self.values(inits);
        self.out.push_str(&format!(") dimension={dimension} "));
        let rest = super::form::rest(operation, |name| Own::Scan.attributes().contains(&name));
        if !rest.is_empty() {
            self.out.push_str(" attributes ");
            attribute::dictionary_of(&mut self.out, &rest, 0);
        }
        self.out.push(' ');
        self.region(region, state.depth, Label::Shown, "");
        self.out.push_str(" : ");
        self.form_types(Types::Function, operation)?;
        state.operands = &[];
        (state.has_types, state.has_regions) = (true, true);
        Ok(())
    }

    /// `(%a: type, ...) {...}`.
    fn labelled_region(&mut self, state: &mut FormState<'p>) -> Fit {
        let [region] = state.operation.regions.as_slice() else { return Err(Unfit) };
        self.out.push('(');
        let arguments = region.blocks.first().map_or(&[][..], |block| &block.arguments);
        for (number, &argument) in arguments.iter().enumerate() {
            self.out.push_str(if number > 0 { ", " } else { "" });
            self.argument(argument);
        }
        self.out.push_str(") ");
        self.region(region, state.depth, Label::Hidden, "");
        state.has_regions = true;
        Ok(())
    }

    /// `max `, or nothing for `sum`.
    fn reduction_kind(&mut self, operation: &Operation) -> Fit {
        let word = match operation.attribute("reduction_op") {
            Some(Attribute::Integer(number, ty)) => numbered(&["sum", "max", "min"], *number, ty)?,
            None => "sum",
            Some(_) => return Err(Unfit),
        };
        match word {
            // The space is here already, and another comes.
            "sum" => drop(self.out.pop()),
            word => self.out.push_str(word),
        }
        Ok(())
    }
}

fn list_of<'a>(operation: &'a Operation, name: &str) -> Result<&'a [i64], Unfit> {
    match operation.attribute(name) {
        Some(Attribute::DenseArray(DenseArray::I64(values))) => Ok(values),
        _ => Err(Unfit),
    }
}

/// The padding of a convolution before and after each dim.
fn padding_rows(padding: &DenseElements) -> Result<Vec<[i64; 2]>, Unfit> {
    let (Type::Tensor(ty), Elements::Bytes(bytes)) = (&*padding.ty, &padding.elements) else {
        return Err(Unfit);
    };
    let (&[Some(rows), Some(2)], Scalar::Integer { bits: 64, .. }) = (&ty.dims[..], &ty.element)
    else {
        return Err(Unfit);
    };
    let rows = usize::try_from(rows).map_err(|_| Unfit)?;
    let values = bytes.chunks_exact(8).map(|bytes| {
        let bytes: [u8; 8] = bytes.try_into().unwrap_or_default();
        i64::from_le_bytes(bytes)
    });
    let values: Vec<i64> = values.collect();
    match values.as_slice() {
        // One value stands for all. A window has few dims.
        &[value] if rows <= 64 => Ok(vec![[value, value]; rows]),
        values if values.len().checked_div(2) == Some(rows) && values.len() % 2 == 0 => {
            let pairs = values.chunks_exact(2);
            Ok(pairs.filter_map(|pair| pair.try_into().ok()).collect())
        }
        _ => Err(Unfit),
    }
}

/// The numbers of inputs and of initial values of a scan.
pub(in super::super) fn scan_sizes(scan: &Operation) -> Option<(usize, usize)> {
    match scan.attribute("operandSegmentSizes")? {
        Attribute::DenseArray(DenseArray::Integer(32, sizes)) => match *sizes.as_slice() {
            [inputs, inits] => Some((inputs.try_into().ok()?, inits.try_into().ok()?)),
            _ => None,
        },
        _ => None,
    }
}
