//! The numbers of VHLO's attributes and types.

/// The numbers of attributes.
pub(crate) mod code {
    pub(crate) const ARRAY: u64 = 1;
    pub(crate) const BOOL: u64 = 2;
    pub(crate) const API_VERSION: u64 = 5;
    pub(crate) const DICTIONARY: u64 = 6;
    pub(crate) const FLOAT: u64 = 8;
    pub(crate) const INTEGER: u64 = 9;
    pub(crate) const STRING: u64 = 14;
    pub(crate) const TENSOR: u64 = 15;
    pub(crate) const TYPE: u64 = 17;
    pub(crate) const BOUNDS: u64 = 18;
    pub(crate) const AXIS: u64 = 22;
    pub(crate) const REPLICA_GROUPS: u64 = 23;
    pub(crate) const MESH_AXIS: u64 = 24;
    pub(crate) const MESH: u64 = 25;
}

/// The numbers of types with parameters, and of those that are no scalars.
pub(crate) mod type_code {
    pub(crate) const COMPLEX: u64 = 1;
    pub(crate) const FUNCTION: u64 = 8;
    pub(crate) const TENSOR: u64 = 20;
    pub(crate) const TENSOR_WITH_ENCODING: u64 = 21;
    pub(crate) const TOKEN: u64 = 22;
    pub(crate) const TUPLE: u64 = 23;
    pub(crate) const QUANTIZED: u64 = 24;
    pub(crate) const UNRANKED: u64 = 25;
    pub(crate) const QUANTIZED_PER_AXIS: u64 = 30;
    pub(crate) const NONE: u64 = 33;
    pub(crate) const BUFFER: u64 = 41;
    pub(crate) const FUTURE: u64 = 42;
}

/// The scalars: the number, the name of the type, the first version that has it.
pub(crate) const SCALARS: &[(u64, &str, (u32, u32))] = &[
    (0, "i1", (0, 9)),
    (2, "bf16", (0, 9)),
    (3, "f16", (0, 9)),
    (4, "f32", (0, 9)),
    (5, "f64", (0, 9)),
    (6, "f8E4M3FN", (0, 9)),
    (7, "f8E5M2", (0, 9)),
    (9, "index", (0, 9)),
    (10, "i4", (0, 9)),
    (11, "i8", (0, 9)),
    (12, "i16", (0, 9)),
    (13, "i32", (0, 9)),
    (14, "i64", (0, 9)),
    (15, "ui4", (0, 9)),
    (16, "ui8", (0, 9)),
    (17, "ui16", (0, 9)),
    (18, "ui32", (0, 9)),
    (19, "ui64", (0, 9)),
    (27, "f8E4M3FNUZ", (0, 10)),
    (28, "f8E5M2FNUZ", (0, 10)),
    (29, "f8E4M3B11FNUZ", (0, 11)),
    (31, "i2", (1, 2)),
    (32, "ui2", (1, 2)),
    (34, "tf32", (1, 6)),
    (35, "f8E4M3", (1, 7)),
    (36, "f8E3M4", (1, 7)),
    (37, "f4E2M1FN", (1, 8)),
    (38, "f6E2M3FN", (1, 8)),
    (39, "f6E3M2FN", (1, 8)),
    (40, "f8E8M0FNU", (1, 8)),
];
