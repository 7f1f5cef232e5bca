//! Attributes of StableHLO as attributes of HLO, by their kinds.

use smallvec::SmallVec;
use smol_str::SmolStr;
use tilewright_ir::devices::{AxisRef, Mesh, MeshAxis, MeshDevices, ReplicaGroups, SubAxis};
use tilewright_ir::ops::attr::{AttrValue, AttrValues, Real};
use tilewright_ir::ops::dims::{ConvDims, PadDim, SliceDim, WindowDim};
use tilewright_ir::ops::elementwise::ResultAccuracy;

use super::attributes::{
    dims, find, integer, integers, misfit, missing, optional_bool, optional_int, optional_list,
    optional_text, pairs, parameter, table, text,
};
use super::error::Import;
use crate::dialect::{Attr, Field, Joined, Need, Op, Structure, ValueKind};
use crate::mlir::{Attribute, DialectAttribute, Operation, Program, Type};

/// Reads the attributes of HLO that an operation has, by the row of its op.
pub(super) fn read(program: &Program, op: &Op, operation: &Operation) -> Import<AttrValues> {
    let mut values = AttrValues::default();
    for attr in op.attributes() {
        if let Some(hlo) = attr.hlo
            && let Some(value) = value(program, operation, attr)?
        {
            values.insert(hlo, value);
        }
        if let ValueKind::Structure(structure) = attr.kind {
            parameters(operation, attr.name, structure, &mut values)?;
        }
    }
    if let Some(joined) = op.joined {
        values.insert(joined.hlo(), self::joined(program, operation, joined)?);
    }
    Ok(values)
}

/// Reads the parameters of a structure that are attributes of HLO. MLIR leaves some out, and a composite lists the
/// values of all.
fn parameters(
    operation: &Operation,
    name: &str,
    structure: &Structure,
    values: &mut AttrValues,
) -> Import<()> {
    let listed = match operation.attribute(name) {
        Some(Attribute::Array(listed)) => Some(listed),
        _ => None,
    };
    for (at, parameter) in structure.parameters.iter().enumerate() {
        let Some(hlo) = parameter.hlo else { continue };
        let name = format!("{name}.{}", parameter.name);
        let value = match parameter.field {
            Field::Number | Field::NumberUnlessZero => {
                AttrValue::Int(optional_int(operation, &name)?.unwrap_or(0))
            }
            _ => AttrValue::Dims(match listed {
                Some(listed) => listed.get(at).and_then(integers).unwrap_or_default().into(),
                None => dims(operation, &name)?,
            }),
        };
        values.insert(hlo, value);
    }
    Ok(())
}

fn value(program: &Program, operation: &Operation, attr: &Attr) -> Import<Option<AttrValue>> {
    let name = attr.name;
    Ok(match attr.kind {
        ValueKind::Dims => Some(AttrValue::Dims(dims(operation, name)?)),
        ValueKind::Integer(..) => match optional_int(operation, name)? {
            None if attr.need == Need::Required => return Err(missing(operation, name)),
            found => found.map(AttrValue::Int),
        },
        ValueKind::OneDim => {
            let dim = optional_int(operation, name)?;
            if dim.is_none() && attr.need == Need::Required {
                return Err(missing(operation, name));
            }
            // The dimension of a sort is the last one unless it is given.
            Some(AttrValue::Dims([dim.unwrap_or(-1)].into_iter().collect()))
        }
        ValueKind::Float(_) => match find(operation, name) {
            #[allow(clippy::cast_possible_truncation, reason = "the attribute has 32 bits")]
            Some(Attribute::Float(value, _)) => Some(AttrValue::Float(Real(*value as f32))),
            _ => return Err(misfit(operation, name, "a float")),
        },
        ValueKind::Bool | ValueKind::Unit => optional_bool(operation, name)?.map(AttrValue::Bool),
        ValueKind::Word(_) => {
            optional_text(operation, name)?.filter(|word| word != "NOTYPE").map(AttrValue::Word)
        }
        ValueKind::PrefixedWord(_, prefix) => optional_text(operation, name)?
            .map(|word| AttrValue::Word(format!("{prefix}{}", word.to_lowercase()).into())),
        ValueKind::Precisions => precisions(operation, name)?,
        ValueKind::Groups => groups(program, operation, name)?,
        ValueKind::Pairs => {
            let pairs = pairs(operation, name)?.ok_or_else(|| missing(operation, name))?;
            Some(AttrValue::Pairs(pairs.to_vec()))
        }
        ValueKind::Channel => channel(operation, name)?,
        ValueKind::Accuracy => accuracy(operation, name)?,
        ValueKind::Algorithm => algorithm(operation, name)?,
        ValueKind::Convolution => Some(AttrValue::ConvDims(conv_dims(operation, name)?)),
        // HLO has no such attributes.
        ValueKind::Any
        | ValueKind::Bools
        | ValueKind::Name
        | ValueKind::Number(_)
        | ValueKind::Sharding(_)
        | ValueKind::Shardings
        | ValueKind::Structure(_)
        | ValueKind::Symbol
        | ValueKind::Symbols
        | ValueKind::Text => None,
    })
}

/// Reads the attributes that are one in HLO.
fn joined(program: &Program, operation: &Operation, joined: Joined) -> Import<AttrValue> {
    Ok(match joined {
        Joined::Slices => AttrValue::Slices(slices(operation)?),
        Joined::Padding => AttrValue::Padding(padding(operation)?),
        Joined::Window(base, window) => {
            let sizes = dims(operation, "window_dimensions")?;
            AttrValue::Window(window_dims(operation, &sizes, (base, window))?)
        }
        Joined::ConvolutionWindow => AttrValue::Window(conv_window(program, operation)?),
    })
}

/// XLA writes no precisions if all are the default.
fn precisions(operation: &Operation, name: &str) -> Import<Option<AttrValue>> {
    let list = match find(operation, name) {
        None => return Ok(None),
        Some(Attribute::Array(list)) => list,
        Some(_) => return Err(misfit(operation, name, "a list of precisions")),
    };
    let words = list.iter().map(|entry| text(entry).map(|word| SmolStr::new(word.to_lowercase())));
    let words: Option<Vec<SmolStr>> = words.collect();
    let words = words.ok_or_else(|| misfit(operation, name, "a list of precisions"))?;
    let all_default = words.iter().all(|word| word == "default");
    Ok((!all_default).then_some(AttrValue::Words(words)))
}

/// Groups of different sizes are filled up with -1.
pub(super) fn groups(
    program: &Program,
    operation: &Operation,
    name: &str,
) -> Import<Option<AttrValue>> {
    if let Some(Attribute::Dialect(axes)) = find(operation, name) {
        let groups = groups_of_mesh(program, axes);
        let groups =
            groups.ok_or_else(|| misfit(operation, name, "axes of a mesh of the program"))?;
        return Ok(Some(AttrValue::ReplicaGroups(Box::new(groups))));
    }
    let Some(rows) = table(operation, name)? else { return Ok(None) };
    let listed = |row: Vec<i64>| row.into_iter().filter(|&id| id >= 0).collect();
    let lists = rows.into_iter().map(listed).collect();
    Ok(Some(AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(lists)))))
}

/// Returns the mesh of this name.
fn mesh_of(program: &Program, name: &str) -> Option<Mesh> {
    let frontend = super::shardings::frontend(&program.module.attributes);
    let (_, text) = frontend.iter().find(|(name, _)| name == "xla.sdy.meshes")?;
    let mut meshes = tilewright_ir::sdy::meshes(text)?.into_iter();
    meshes.find_map(|(known, mesh)| (known == name).then_some(mesh))
}

/// `#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>`
fn inlined_mesh(mesh: &DialectAttribute) -> Option<Mesh> {
    let Attribute::Array(axes) = parameter(mesh, "axes")? else { return None };
    let axis = |axis: &Attribute| {
        let Attribute::Dialect(axis) = axis else { return None };
        let (name, size) = (parameter(axis, "name")?, parameter(axis, "size")?);
        Some(MeshAxis { name: text(name)?, size: integer(size)? })
    };
    let axes = axes.iter().map(axis).collect::<Option<_>>()?;
    let devices = match parameter(mesh, "device_ids") {
        Some(ids) => MeshDevices::List(integers(ids)?),
        None => MeshDevices::InOrder,
    };
    Some(Mesh { axes, devices })
}

/// `#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>`
fn groups_of_mesh(program: &Program, axes: &DialectAttribute) -> Option<ReplicaGroups> {
    let mesh = match parameter(axes, "mesh")? {
        Attribute::Symbol(path) => mesh_of(program, path.first()?)?,
        Attribute::Dialect(mesh) => inlined_mesh(mesh)?,
        _ => return None,
    };
    let Attribute::Array(list) = parameter(axes, "axes")? else { return None };
    let axis = |axis: &Attribute| {
        let Attribute::Dialect(axis) = axis else { return None };
        let number = mesh.axis(&super::attributes::text(parameter(axis, "name")?)?)?;
        let part = |name| match parameter(axis, "sub_axis_info") {
            Some(Attribute::Dialect(part)) => parameter(part, name).and_then(integer),
            _ => None,
        };
        let sub_axis =
            part("pre_size").zip(part("size")).map(|(pre_size, size)| SubAxis { pre_size, size });
        Some(AxisRef { axis: number, sub_axis })
    };
    let axes = list.iter().map(axis).collect::<Option<_>>()?;
    Some(ReplicaGroups::Mesh { mesh, axes })
}

fn channel(operation: &Operation, name: &str) -> Import<Option<AttrValue>> {
    let handle = match find(operation, name) {
        None => return Ok(None),
        Some(Attribute::Dialect(attribute)) => parameter(attribute, "handle").and_then(integer),
        Some(other) => integer(other),
    };
    let handle = handle.ok_or_else(|| misfit(operation, name, "a channel"))?;
    Ok((handle > 0).then_some(AttrValue::Int(handle)))
}

fn accuracy(operation: &Operation, name: &str) -> Import<Option<AttrValue>> {
    let attribute = match find(operation, name) {
        None => return Ok(None),
        Some(Attribute::Dialect(attribute)) => attribute,
        Some(_) => return Err(misfit(operation, name, "an accuracy")),
    };
    let mode = parameter(attribute, "mode").and_then(text).unwrap_or_default();
    let accuracy = match mode.as_str() {
        "HIGHEST" => ResultAccuracy::Highest,
        "TOLERANCE" => ResultAccuracy::Tolerance {
            atol: real(attribute, "atol"),
            rtol: real(attribute, "rtol"),
            ulps: parameter(attribute, "ulps").and_then(integer).unwrap_or(0),
        },
        _ => return Ok(None),
    };
    Ok(Some(AttrValue::Accuracy(accuracy)))
}

fn real(attribute: &DialectAttribute, name: &str) -> tilewright_ir::ops::attr::Real64 {
    let value = match parameter(attribute, name) {
        Some(Attribute::Float(value, _)) => *value,
        _ => 0.0,
    };
    tilewright_ir::ops::attr::Real64(value)
}

/// The parts of a dot algorithm, and its name in HLO.
#[rustfmt::skip]
pub(crate) const ALGORITHMS: &[(&str, &str, &str, i64, bool, &str)] = &[
    ("f16", "f16", "f16", 1, false, "dot_f16_f16_f16"),
    ("f16", "f16", "f32", 1, false, "dot_f16_f16_f32"),
    ("bf16", "bf16", "bf16", 1, false, "dot_bf16_bf16_bf16"),
    ("bf16", "bf16", "f32", 1, false, "dot_bf16_bf16_f32"),
    ("bf16", "bf16", "f32", 3, false, "dot_bf16_bf16_f32_x3"),
    ("bf16", "bf16", "f32", 6, false, "dot_bf16_bf16_f32_x6"),
    ("bf16", "bf16", "f32", 9, false, "dot_bf16_bf16_f32_x9"),
    ("tf32", "tf32", "f32", 1, false, "dot_tf32_tf32_f32"),
    ("tf32", "tf32", "f32", 3, false, "dot_tf32_tf32_f32_x3"),
    ("f32", "f32", "f32", 1, false, "dot_f32_f32_f32"),
    ("f64", "f64", "f64", 1, false, "dot_f64_f64_f64"),
    ("f8", "f8", "f32", 1, false, "dot_any_f8_any_f8_f32"),
    ("f8", "f8", "f32", 1, true, "dot_any_f8_any_f8_f32_fast_accum"),
];

fn algorithm(operation: &Operation, name: &str) -> Import<Option<AttrValue>> {
    let attribute = match find(operation, name) {
        None => return Ok(None),
        Some(Attribute::Dialect(attribute)) => attribute,
        Some(_) => return Err(misfit(operation, name, "an algorithm")),
    };
    let ty = |name| match parameter(attribute, name) {
        Some(Attribute::Type(ty)) => match &**ty {
            Type::Scalar(crate::mlir::Scalar::Float(name)) => {
                let name = name.to_lowercase();
                if name.starts_with("f8") { "f8".to_owned() } else { name }
            }
            _ => String::new(),
        },
        _ => String::new(),
    };
    let (lhs, rhs) = (ty("lhs_precision_type"), ty("rhs_precision_type"));
    let sum = ty("accumulation_type");
    let count = parameter(attribute, "num_primitive_operations").and_then(integer).unwrap_or(1);
    let imprecise = matches!(
        parameter(attribute, "allow_imprecise_accumulation"),
        Some(Attribute::Bool(true) | Attribute::Unit)
    );
    let found = ALGORITHMS.iter().find(|(left, right, of_sum, products, fast, _)| {
        (*left, *right, *of_sum) == (lhs.as_str(), rhs.as_str(), sum.as_str())
            && (*products, *fast) == (count, imprecise)
    });
    match found {
        Some((.., word)) => Ok(Some(AttrValue::Word(SmolStr::new_static(word)))),
        None => Err(misfit(operation, name, "an algorithm that HLO has")),
    }
}

fn conv_dims(operation: &Operation, name: &str) -> Import<ConvDims> {
    let Some(Attribute::Dialect(attribute)) = find(operation, name) else {
        return Err(misfit(operation, name, "the numbers of dims"));
    };
    let one = |dim: &str| parameter(attribute, dim).and_then(integer).unwrap_or(0);
    let spatial = |dims: &str| {
        let list = parameter(attribute, dims).and_then(integers).unwrap_or_default();
        list.into_iter().collect::<SmallVec<[i64; 3]>>()
    };
    Ok(ConvDims {
        input_batch: one("input_batch_dimension"),
        input_feature: one("input_feature_dimension"),
        input_spatial: spatial("input_spatial_dimensions"),
        kernel_input_feature: one("kernel_input_feature_dimension"),
        kernel_output_feature: one("kernel_output_feature_dimension"),
        kernel_spatial: spatial("kernel_spatial_dimensions"),
        output_batch: one("output_batch_dimension"),
        output_feature: one("output_feature_dimension"),
        output_spatial: spatial("output_spatial_dimensions"),
    })
}

fn slices(operation: &Operation) -> Import<SmallVec<[SliceDim; 4]>> {
    let starts = dims(operation, "start_indices")?;
    let limits = dims(operation, "limit_indices")?;
    let strides = dims(operation, "strides")?;
    if starts.len() != limits.len() || starts.len() != strides.len() {
        return Err(misfit(operation, "limit_indices", "as many indices as `start_indices`"));
    }
    let dims = starts.iter().zip(&limits).zip(&strides);
    Ok(dims.map(|((&start, &limit), &stride)| SliceDim { start, limit, stride }).collect())
}

fn padding(operation: &Operation) -> Import<SmallVec<[PadDim; 4]>> {
    let low = dims(operation, "edge_padding_low")?;
    let high = dims(operation, "edge_padding_high")?;
    let interior = dims(operation, "interior_padding")?;
    if low.len() != high.len() || low.len() != interior.len() {
        return Err(misfit(operation, "edge_padding_high", "as many dims as `edge_padding_low`"));
    }
    let dims = low.iter().zip(&high).zip(&interior);
    Ok(dims.map(|((&low, &high), &interior)| PadDim { low, high, interior }).collect())
}

/// Returns the entry of each dim; `default` for all if the attribute is missing.
fn per_dim(operation: &Operation, name: &str, rank: usize, default: i64) -> Import<Vec<i64>> {
    match optional_list(operation, name)? {
        None => Ok(vec![default; rank]),
        Some(list) if list.len() == rank => Ok(list),
        Some(_) => Err(misfit(operation, name, "an entry for each dim of the window")),
    }
}

fn window_dims(
    operation: &Operation,
    sizes: &[i64],
    (base, window): (&str, &str),
) -> Import<SmallVec<[WindowDim; 2]>> {
    let rank = sizes.len();
    let strides = per_dim(operation, "window_strides", rank, 1)?;
    let base = per_dim(operation, base, rank, 1)?;
    let dilations = per_dim(operation, window, rank, 1)?;
    let reversal = per_dim(operation, "window_reversal", rank, 0)?;
    let padding = match pairs(operation, "padding")? {
        None => std::iter::repeat_n((0, 0), rank).collect(),
        Some(pairs) if pairs.len() == rank => pairs,
        Some(_) => return Err(misfit(operation, "padding", "a pair for each dim of the window")),
    };
    let dims = sizes.iter().zip(strides).zip(base).zip(dilations).zip(reversal).zip(padding);
    let dim = |(((((&size, stride), base_dilation), window_dilation), reversal), (low, high))| {
        WindowDim {
            size,
            stride,
            padding_low: low,
            padding_high: high,
            base_dilation,
            window_dilation,
            reversal: reversal != 0,
        }
    };
    Ok(dims.map(dim).collect())
}

/// The window of a convolution has the spatial dims of the kernel.
fn conv_window(program: &Program, operation: &Operation) -> Import<SmallVec<[WindowDim; 2]>> {
    let kernel = operation.operands.get(1).and_then(|&kernel| program.type_of(kernel));
    let Some(Type::Tensor(kernel)) = kernel else {
        return Err(misfit(operation, "rhs", "a tensor"));
    };
    let spatial = conv_dims(operation, "dimension_numbers")?.kernel_spatial;
    let size = |&dim: &i64| *kernel.dims.get(usize::try_from(dim).ok()?)?;
    let sizes: Option<Vec<i64>> = spatial.iter().map(size).collect();
    let sizes = sizes.ok_or_else(|| misfit(operation, "rhs", "a kernel of known sizes"))?;
    window_dims(operation, &sizes, ("lhs_dilation", "rhs_dilation"))
}
