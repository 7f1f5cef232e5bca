//! Generated from `proto/hlo.proto`: do not edit, see `tests/generated.rs`.

use crate::residue::{Known, Known::Leaf, Known::Message, Known::Repeated};

/// `HloModuleProto`
pub(crate) static HLO_MODULE_PROTO: [(u32, Known); 11] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Message(&PROGRAM_SHAPE_PROTO)),
    (6, Leaf),
    (7, Message(&HLO_SCHEDULE_PROTO)),
    (8, Message(&HLO_INPUT_OUTPUT_ALIAS_PROTO)),
    (17, Message(&STACK_FRAME_INDEX_PROTO)),
    (18, Message(&HLO_BUFFER_DONOR_PROTO)),
    (19, Message(&FRONTEND_ATTRIBUTES)),
    (20, Message(&ORIGINAL_VALUE_RECOVERY_TABLE_PROTO)),
];

/// `HloScheduleProto`
pub(crate) static HLO_SCHEDULE_PROTO: [(u32, Known); 1] = [
    (1, Leaf),
];

/// `HloScheduleProto.InstructionSequence`
pub(crate) static HLO_SCHEDULE_PROTO_INSTRUCTION_SEQUENCE: [(u32, Known); 1] = [
    (1, Leaf),
];

/// `HloInputOutputAliasProto`
pub(crate) static HLO_INPUT_OUTPUT_ALIAS_PROTO: [(u32, Known); 1] = [
    (1, Repeated(&HLO_INPUT_OUTPUT_ALIAS_PROTO_ALIAS_ENTRY_PROTO)),
];

/// `HloInputOutputAliasProto.AliasEntryProto`
pub(crate) static HLO_INPUT_OUTPUT_ALIAS_PROTO_ALIAS_ENTRY_PROTO: [(u32, Known); 4] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
];

/// `HloBufferDonorProto`
pub(crate) static HLO_BUFFER_DONOR_PROTO: [(u32, Known); 1] = [
    (1, Repeated(&HLO_BUFFER_DONOR_PROTO_BUFFER_DONOR_ENTRY_PROTO)),
];

/// `HloBufferDonorProto.BufferDonorEntryProto`
pub(crate) static HLO_BUFFER_DONOR_PROTO_BUFFER_DONOR_ENTRY_PROTO: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `StackFrameIndexProto`
pub(crate) static STACK_FRAME_INDEX_PROTO: [(u32, Known); 4] = [
    (1, Leaf),
    (2, Leaf),
    (3, Repeated(&STACK_FRAME_INDEX_PROTO_FILE_LOCATION)),
    (4, Repeated(&STACK_FRAME_INDEX_PROTO_STACK_FRAME)),
];

/// `StackFrameIndexProto.FileLocation`
pub(crate) static STACK_FRAME_INDEX_PROTO_FILE_LOCATION: [(u32, Known); 6] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
    (5, Leaf),
    (6, Leaf),
];

/// `StackFrameIndexProto.StackFrame`
pub(crate) static STACK_FRAME_INDEX_PROTO_STACK_FRAME: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `HloComputationProto`
pub(crate) static HLO_COMPUTATION_PROTO: [(u32, Known); 7] = [
    (1, Leaf),
    (2, Leaf),
    (4, Message(&PROGRAM_SHAPE_PROTO)),
    (5, Leaf),
    (6, Leaf),
    (7, Leaf),
    (8, Leaf),
];

/// `HloInstructionProto`
pub(crate) static HLO_INSTRUCTION_PROTO: [(u32, Known); 82] = [
    (1, Leaf),
    (2, Leaf),
    (3, Message(&SHAPE_PROTO)),
    (7, Message(&OP_METADATA)),
    (8, Message(&LITERAL_PROTO)),
    (9, Leaf),
    (11, Leaf),
    (13, Leaf),
    (14, Leaf),
    (15, Message(&WINDOW)),
    (16, Message(&CONVOLUTION_DIMENSION_NUMBERS)),
    (17, Repeated(&HLO_INSTRUCTION_PROTO_SLICE_DIMENSIONS)),
    (18, Leaf),
    (19, Leaf),
    (20, Leaf),
    (21, Message(&PADDING_CONFIG)),
    (22, Leaf),
    (23, Leaf),
    (24, Leaf),
    (25, Leaf),
    (26, Leaf),
    (27, Leaf),
    (28, Leaf),
    (29, Message(&SHAPE_PROTO)),
    (30, Message(&DOT_DIMENSION_NUMBERS)),
    (31, Leaf),
    (32, Leaf),
    (33, Message(&GATHER_DIMENSION_NUMBERS)),
    (34, Leaf),
    (35, Leaf),
    (36, Leaf),
    (37, Leaf),
    (38, Leaf),
    (40, Message(&OP_SHARDING)),
    (43, Leaf),
    (47, Leaf),
    (48, Message(&SCATTER_DIMENSION_NUMBERS)),
    (49, Repeated(&REPLICA_GROUP)),
    (50, Leaf),
    (51, Message(&PRECISION_CONFIG)),
    (52, Repeated(&SOURCE_TARGET)),
    (54, Message(&OP_SHARDING)),
    (55, Message(&OP_SHARDING)),
    (56, Leaf),
    (57, Repeated(&SHAPE_PROTO)),
    (58, Leaf),
    (59, Message(&TRIANGULAR_SOLVE_OPTIONS)),
    (60, Leaf),
    (61, Message(&PARAMETER_REPLICATION)),
    (62, Message(&CHOLESKY_OPTIONS)),
    (63, Leaf),
    (65, Leaf),
    (66, Leaf),
    (67, Leaf),
    (68, Message(&FRONTEND_ATTRIBUTES)),
    (69, Leaf),
    (70, Leaf),
    (71, Leaf),
    (72, Leaf),
    (74, Repeated(&OUTPUT_OPERAND_ALIASING)),
    (75, Leaf),
    (76, Leaf),
    (77, Leaf),
    (79, Leaf),
    (80, Leaf),
    (81, Leaf),
    (82, Message(&STATISTICS_VIZ)),
    (85, Leaf),
    (87, Message(&COLLECTIVE_DEVICE_LIST_PROTO)),
    (88, Message(&ORIGINAL_VALUE_PROTO)),
    (89, Leaf),
    (90, Message(&RAGGED_DOT_DIMENSION_NUMBERS)),
    (91, Message(&RESULT_ACCURACY)),
    (92, Message(&IOTA_REPLICA_GROUP_LIST_PROTO)),
    (93, Message(&MESH_AXES_REPLICA_GROUP_LIST_PROTO)),
    (94, Leaf),
    (95, Leaf),
    (96, Leaf),
    (97, Leaf),
    (98, Message(&SPARSITY_CONFIG)),
    (100, Leaf),
    (102, Leaf),
];

/// `HloInstructionProto.SliceDimensions`
pub(crate) static HLO_INSTRUCTION_PROTO_SLICE_DIMENSIONS: [(u32, Known); 3] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
];

/// `ShapeProto`
pub(crate) static SHAPE_PROTO: [(u32, Known); 5] = [
    (2, Leaf),
    (3, Leaf),
    (4, Repeated(&SHAPE_PROTO)),
    (5, Message(&LAYOUT_PROTO)),
    (6, Leaf),
];

/// `ProgramShapeProto`
pub(crate) static PROGRAM_SHAPE_PROTO: [(u32, Known); 3] = [
    (1, Repeated(&SHAPE_PROTO)),
    (2, Message(&SHAPE_PROTO)),
    (3, Leaf),
];

/// `LayoutProto`
pub(crate) static LAYOUT_PROTO: [(u32, Known); 12] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (6, Repeated(&TILE_PROTO)),
    (7, Leaf),
    (8, Leaf),
    (10, Message(&SHAPE_PROTO)),
    (11, Leaf),
    (12, Leaf),
    (15, Leaf),
    (16, Leaf),
    (17, Repeated(&SPLIT_CONFIG_PROTO)),
];

/// `TileProto`
pub(crate) static TILE_PROTO: [(u32, Known); 1] = [
    (1, Leaf),
];

/// `SplitConfigProto`
pub(crate) static SPLIT_CONFIG_PROTO: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `LiteralProto`
pub(crate) static LITERAL_PROTO: [(u32, Known); 34] = [
    (1, Message(&SHAPE_PROTO)),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
    (5, Leaf),
    (6, Leaf),
    (7, Leaf),
    (8, Leaf),
    (9, Leaf),
    (10, Repeated(&LITERAL_PROTO)),
    (11, Leaf),
    (12, Leaf),
    (13, Leaf),
    (15, Leaf),
    (16, Leaf),
    (17, Leaf),
    (18, Leaf),
    (19, Leaf),
    (20, Leaf),
    (21, Leaf),
    (22, Leaf),
    (23, Leaf),
    (24, Leaf),
    (25, Leaf),
    (26, Leaf),
    (27, Leaf),
    (28, Leaf),
    (29, Leaf),
    (30, Leaf),
    (31, Leaf),
    (32, Leaf),
    (33, Leaf),
    (35, Leaf),
    (36, Leaf),
];

/// `Payload`
pub(crate) static PAYLOAD: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `OpMetadata`
pub(crate) static OP_METADATA: [(u32, Known); 12] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
    (5, Leaf),
    (12, Leaf),
    (15, Leaf),
    (16, Leaf),
    (17, Leaf),
    (18, Leaf),
    (19, Leaf),
    (20, Message(&PAYLOAD)),
];

/// `FrontendAttributes`
pub(crate) static FRONTEND_ATTRIBUTES: [(u32, Known); 1] = [
    (1, Leaf),
];

/// `Statistic`
pub(crate) static STATISTIC: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `StatisticsViz`
pub(crate) static STATISTICS_VIZ: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Repeated(&STATISTIC)),
];

/// `OriginalArrayProto`
pub(crate) static ORIGINAL_ARRAY_PROTO: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `OriginalValueElementProto`
pub(crate) static ORIGINAL_VALUE_ELEMENT_PROTO: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Message(&ORIGINAL_ARRAY_PROTO)),
];

/// `OriginalValueProto`
pub(crate) static ORIGINAL_VALUE_PROTO: [(u32, Known); 2] = [
    (1, Repeated(&ORIGINAL_VALUE_ELEMENT_PROTO)),
    (2, Leaf),
];

/// `OriginalValueRecoveryTableProto`
pub(crate) static ORIGINAL_VALUE_RECOVERY_TABLE_PROTO: [(u32, Known); 1] = [
    (1, Leaf),
];

/// `OriginalValueRecoveryTableProto.Entry`
pub(crate) static ORIGINAL_VALUE_RECOVERY_TABLE_PROTO_ENTRY: [(u32, Known); 3] = [
    (1, Message(&ORIGINAL_ARRAY_PROTO)),
    (2, Message(&ORIGINAL_ARRAY_PROTO)),
    (3, Leaf),
];

/// `ParameterReplication`
pub(crate) static PARAMETER_REPLICATION: [(u32, Known); 1] = [
    (1, Leaf),
];

/// `PaddingConfig`
pub(crate) static PADDING_CONFIG: [(u32, Known); 1] = [
    (1, Repeated(&PADDING_CONFIG_PADDING_CONFIG_DIMENSION)),
];

/// `PaddingConfig.PaddingConfigDimension`
pub(crate) static PADDING_CONFIG_PADDING_CONFIG_DIMENSION: [(u32, Known); 3] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
];

/// `WindowDimension`
pub(crate) static WINDOW_DIMENSION: [(u32, Known); 7] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
    (5, Leaf),
    (6, Leaf),
    (7, Leaf),
];

/// `Window`
pub(crate) static WINDOW: [(u32, Known); 1] = [
    (1, Repeated(&WINDOW_DIMENSION)),
];

/// `GatherDimensionNumbers`
pub(crate) static GATHER_DIMENSION_NUMBERS: [(u32, Known); 6] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
    (5, Leaf),
    (6, Leaf),
];

/// `ScatterDimensionNumbers`
pub(crate) static SCATTER_DIMENSION_NUMBERS: [(u32, Known); 6] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
    (5, Leaf),
    (6, Leaf),
];

/// `ConvolutionDimensionNumbers`
pub(crate) static CONVOLUTION_DIMENSION_NUMBERS: [(u32, Known); 9] = [
    (3, Leaf),
    (4, Leaf),
    (6, Leaf),
    (7, Leaf),
    (8, Leaf),
    (9, Leaf),
    (10, Leaf),
    (11, Leaf),
    (12, Leaf),
];

/// `SparsityConfig`
pub(crate) static SPARSITY_CONFIG: [(u32, Known); 2] = [
    (1, Message(&SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG)),
    (2, Message(&SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG)),
];

/// `SparsityConfig.TensorSparsityConfig`
pub(crate) static SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG: [(u32, Known); 4] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
];

/// `DotDimensionNumbers`
pub(crate) static DOT_DIMENSION_NUMBERS: [(u32, Known); 4] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
];

/// `RaggedDotDimensionNumbers`
pub(crate) static RAGGED_DOT_DIMENSION_NUMBERS: [(u32, Known); 3] = [
    (1, Message(&DOT_DIMENSION_NUMBERS)),
    (2, Leaf),
    (3, Leaf),
];

/// `TriangularSolveOptions`
pub(crate) static TRIANGULAR_SOLVE_OPTIONS: [(u32, Known); 4] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
];

/// `CholeskyOptions`
pub(crate) static CHOLESKY_OPTIONS: [(u32, Known); 1] = [
    (1, Leaf),
];

/// `PrecisionConfig`
pub(crate) static PRECISION_CONFIG: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `ResultAccuracy`
pub(crate) static RESULT_ACCURACY: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Message(&RESULT_ACCURACY_TOLERANCE)),
];

/// `ResultAccuracy.Tolerance`
pub(crate) static RESULT_ACCURACY_TOLERANCE: [(u32, Known); 3] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
];

/// `SourceTarget`
pub(crate) static SOURCE_TARGET: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `OutputOperandAliasing`
pub(crate) static OUTPUT_OPERAND_ALIASING: [(u32, Known); 3] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
];

/// `MeshProto`
pub(crate) static MESH_PROTO: [(u32, Known); 3] = [
    (1, Repeated(&MESH_PROTO_MESH_AXIS)),
    (2, Leaf),
    (3, Message(&MESH_PROTO_IOTA_TRANSFORM)),
];

/// `MeshProto.MeshAxis`
pub(crate) static MESH_PROTO_MESH_AXIS: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `MeshProto.IotaTransform`
pub(crate) static MESH_PROTO_IOTA_TRANSFORM: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `AxisRefProto`
pub(crate) static AXIS_REF_PROTO: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Message(&AXIS_REF_PROTO_SUB_AXIS)),
];

/// `AxisRefProto.SubAxis`
pub(crate) static AXIS_REF_PROTO_SUB_AXIS: [(u32, Known); 2] = [
    (1, Leaf),
    (2, Leaf),
];

/// `NamedShardingProto`
pub(crate) static NAMED_SHARDING_PROTO: [(u32, Known); 7] = [
    (2, Message(&MESH_PROTO)),
    (3, Repeated(&NAMED_SHARDING_PROTO_DIMENSION_SHARDING)),
    (4, Repeated(&AXIS_REF_PROTO)),
    (5, Repeated(&AXIS_REF_PROTO)),
    (6, Repeated(&OP_METADATA)),
    (7, Repeated(&AXIS_REF_PROTO)),
    (8, Leaf),
];

/// `NamedShardingProto.DimensionSharding`
pub(crate) static NAMED_SHARDING_PROTO_DIMENSION_SHARDING: [(u32, Known); 2] = [
    (1, Repeated(&AXIS_REF_PROTO)),
    (2, Leaf),
];

/// `OpSharding`
pub(crate) static OP_SHARDING: [(u32, Known); 13] = [
    (1, Leaf),
    (3, Leaf),
    (4, Leaf),
    (5, Repeated(&OP_SHARDING)),
    (6, Leaf),
    (7, Repeated(&OP_METADATA)),
    (8, Leaf),
    (9, Leaf),
    (10, Leaf),
    (11, Leaf),
    (12, Leaf),
    (13, Leaf),
    (14, Message(&NAMED_SHARDING_PROTO)),
];

/// `ReplicaGroup`
pub(crate) static REPLICA_GROUP: [(u32, Known); 1] = [
    (1, Leaf),
];

/// `CollectiveDeviceListProto`
pub(crate) static COLLECTIVE_DEVICE_LIST_PROTO: [(u32, Known); 2] = [
    (1, Repeated(&REPLICA_GROUP)),
    (2, Message(&IOTA_REPLICA_GROUP_LIST_PROTO)),
];

/// `IotaReplicaGroupListProto`
pub(crate) static IOTA_REPLICA_GROUP_LIST_PROTO: [(u32, Known); 4] = [
    (1, Leaf),
    (2, Leaf),
    (3, Leaf),
    (4, Leaf),
];

/// `MeshAxesReplicaGroupListProto`
pub(crate) static MESH_AXES_REPLICA_GROUP_LIST_PROTO: [(u32, Known); 2] = [
    (1, Message(&MESH_PROTO)),
    (2, Repeated(&AXIS_REF_PROTO)),
];
