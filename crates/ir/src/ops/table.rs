//! **One row per op.** Everything else about an op is derived from its row, or the compiler
//! reports the missing function.
//!
//! A row has the form
//!
//! ```text
//! Variant(Attributes) "text" arity family::rule [FLAGS];
//! ```
//!
//! Flags describe the behaviour of the op and the kinds of elements it accepts. An op without a
//! kind accepts any.
//!
//! `family` is the name of a file in `ops/` here, where `rule` is the op's shape rule, and in
//! `eval/` of the interpreter. See `docs/add-an-op.md`.

/// Calls a macro with all rows.
#[macro_export]
macro_rules! for_each_op {
    ($callback:path) => {
        $callback! {
            // Elementwise, one operand.
            Abs "abs" exactly(1) elementwise::abs [ELEMENTWISE SIGNED FLOAT COMPLEX];
            Acos "acos" exactly(1) elementwise::unary [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Acosh "acosh" exactly(1) elementwise::unary [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Asin "asin" exactly(1) elementwise::unary [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Asinh "asinh" exactly(1) elementwise::unary [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Atanh "atanh" exactly(1) elementwise::unary [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Cbrt(AccuracyAttrs) "cbrt" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT];
            Ceil "ceil" exactly(1) elementwise::unary [ELEMENTWISE FLOAT];
            Clz "count-leading-zeros" exactly(1) elementwise::unary [ELEMENTWISE INTEGER];
            Convert "convert" exactly(1) elementwise::convert [ELEMENTWISE];
            Cos(AccuracyAttrs) "cosine" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Cosh "cosh" exactly(1) elementwise::unary [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Erf(AccuracyAttrs) "erf" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT];
            Exp(AccuracyAttrs) "exponential" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Expm1(AccuracyAttrs) "exponential-minus-one" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Floor "floor" exactly(1) elementwise::unary [ELEMENTWISE FLOAT];
            Imag "imag" exactly(1) elementwise::complex_part [ELEMENTWISE FLOAT COMPLEX];
            IsFinite "is-finite" exactly(1) elementwise::is_finite [ELEMENTWISE FLOAT];
            Log(AccuracyAttrs) "log" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Log1p(AccuracyAttrs) "log-plus-one" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Logistic(AccuracyAttrs) "logistic" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Negate "negate" exactly(1) elementwise::unary [ELEMENTWISE INTEGER FLOAT COMPLEX];
            Not "not" exactly(1) elementwise::unary [ELEMENTWISE BOOL INTEGER];
            PopulationCount "popcnt" exactly(1) elementwise::unary [ELEMENTWISE INTEGER];
            Real "real" exactly(1) elementwise::complex_part [ELEMENTWISE FLOAT COMPLEX];
            ReducePrecision(ReducePrecisionAttrs) "reduce-precision" exactly(1) elementwise::reduce_precision [ELEMENTWISE FLOAT];
            RoundNearestAfz "round-nearest-afz" exactly(1) elementwise::unary [ELEMENTWISE FLOAT];
            RoundNearestEven "round-nearest-even" exactly(1) elementwise::unary [ELEMENTWISE FLOAT];
            Rsqrt(AccuracyAttrs) "rsqrt" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Sign "sign" exactly(1) elementwise::unary [ELEMENTWISE SIGNED FLOAT COMPLEX];
            Sin(AccuracyAttrs) "sine" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Sinh "sinh" exactly(1) elementwise::unary [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Sqrt(AccuracyAttrs) "sqrt" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Tan(AccuracyAttrs) "tan" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Tanh(AccuracyAttrs) "tanh" exactly(1) elementwise::approximate [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];

            // Elementwise, more operands.
            Add "add" exactly(2) elementwise::binary [ELEMENTWISE COMMUTATIVE ASSOCIATIVE];
            And "and" exactly(2) elementwise::binary [ELEMENTWISE COMMUTATIVE ASSOCIATIVE BOOL INTEGER];
            Atan2 "atan2" exactly(2) elementwise::binary [ELEMENTWISE TRANSCENDENTAL FLOAT COMPLEX];
            Clamp "clamp" exactly(3) elementwise::clamp [ELEMENTWISE];
            Compare(CompareAttrs) "compare" exactly(2) elementwise::compare [ELEMENTWISE];
            Complex "complex" exactly(2) elementwise::complex [ELEMENTWISE];
            Divide "divide" exactly(2) elementwise::binary [ELEMENTWISE TRANSCENDENTAL INTEGER FLOAT COMPLEX];
            Maximum "maximum" exactly(2) elementwise::binary [ELEMENTWISE COMMUTATIVE ASSOCIATIVE];
            Minimum "minimum" exactly(2) elementwise::binary [ELEMENTWISE COMMUTATIVE ASSOCIATIVE];
            Mulhi "mulhi" exactly(2) elementwise::binary [ELEMENTWISE COMMUTATIVE INTEGER];
            Multiply "multiply" exactly(2) elementwise::binary [ELEMENTWISE COMMUTATIVE ASSOCIATIVE];
            Or "or" exactly(2) elementwise::binary [ELEMENTWISE COMMUTATIVE ASSOCIATIVE BOOL INTEGER];
            Power "power" exactly(2) elementwise::binary [ELEMENTWISE TRANSCENDENTAL INTEGER FLOAT COMPLEX];
            Remainder "remainder" exactly(2) elementwise::binary [ELEMENTWISE TRANSCENDENTAL INTEGER FLOAT COMPLEX];
            Select "select" exactly(3) elementwise::select [ELEMENTWISE];
            ShiftLeft "shift-left" exactly(2) elementwise::binary [ELEMENTWISE INTEGER];
            ShiftRightArithmetic "shift-right-arithmetic" exactly(2) elementwise::binary [ELEMENTWISE INTEGER];
            ShiftRightLogical "shift-right-logical" exactly(2) elementwise::binary [ELEMENTWISE INTEGER];
            StochasticConvert "stochastic-convert" exactly(2) elementwise::stochastic_convert [ELEMENTWISE];
            Subtract "subtract" exactly(2) elementwise::binary [ELEMENTWISE INTEGER FLOAT COMPLEX];
            Xor "xor" exactly(2) elementwise::binary [ELEMENTWISE COMMUTATIVE ASSOCIATIVE BOOL INTEGER];

            // Shaping: elements are moved or repeated, none is computed.
            Bitcast "bitcast" exactly(1) shaping::bitcast [];
            BitcastConvert "bitcast-convert" exactly(1) shaping::bitcast_convert [];
            Broadcast(BroadcastAttrs) "broadcast" exactly(1) shaping::broadcast [];
            Concatenate(ConcatenateAttrs) "concatenate" at_least(1) shaping::concatenate [];
            Constant(Literal) "constant" exactly(0) shaping::constant [];
            Copy "copy" exactly(1) shaping::copy [LAYOUT];
            DynamicReshape "dynamic-reshape" at_least(1) shaping::dynamic_reshape [];
            GetDimensionSize(GetDimensionSizeAttrs) "get-dimension-size" exactly(1) shaping::get_dimension_size [];
            Iota(IotaAttrs) "iota" exactly(0) shaping::iota [];
            Pad(PadAttrs) "pad" exactly(2) shaping::pad [];
            Parameter(ParameterAttrs) "parameter" exactly(0) shaping::parameter [];
            Reshape(ReshapeAttrs) "reshape" exactly(1) shaping::reshape [];
            Reverse(ReverseAttrs) "reverse" exactly(1) shaping::reverse [LAYOUT];
            SetDimensionSize(SetDimensionSizeAttrs) "set-dimension-size" exactly(2) shaping::set_dimension_size [LAYOUT];
            Slice(SliceAttrs) "slice" exactly(1) shaping::slice [];
            Transpose(TransposeAttrs) "transpose" exactly(1) shaping::transpose [LAYOUT];

            // Contractions.
            Convolution(ConvolutionAttrs) "convolution" exactly(2) contract::convolution [];
            Dot(DotAttrs) "dot" exactly(2) contract::dot [];
            RaggedDot(RaggedDotAttrs) "ragged-dot" exactly(3) contract::ragged_dot [];
            ScaledDot(DotAttrs) "scaled-dot" exactly(4) contract::scaled_dot [];

            // Windows that move over an array.
            ReduceWindow(ReduceWindowAttrs) "reduce-window" at_least(2) window::reduce_window [];
            SelectAndScatter(SelectAndScatterAttrs) "select-and-scatter" exactly(3) window::select_and_scatter [LAYOUT];

            // Indexing by run-time values.
            DynamicSlice(DynamicSliceAttrs) "dynamic-slice" at_least(1) indexing::dynamic_slice [];
            DynamicUpdateSlice "dynamic-update-slice" at_least(2) indexing::dynamic_update_slice [LAYOUT];
            Gather(GatherAttrs) "gather" exactly(2) indexing::gather [];
            Scatter(ScatterAttrs) "scatter" at_least(3) indexing::scatter [LAYOUT];

            // Reductions, scans and sorts.
            Reduce(ReduceAttrs) "reduce" at_least(2) reduce::reduce [];
            Scan(ScanAttrs) "scan" at_least(1) reduce::scan [];
            Sort(SortAttrs) "sort" at_least(1) reduce::sort [LAYOUT];
            TopK(TopKAttrs) "topk" exactly(1) reduce::topk [];

            // Control and structure.
            AddDependency "add-dependency" exactly(2) control::add_dependency [HANDS_ON LAYOUT];
            AfterAll "after-all" at_least(0) control::after_all [];
            AsyncDone(AsyncAttrs) "async-done" exactly(1) control::async_done [];
            AsyncStart(AsyncAttrs) "async-start" at_least(0) control::async_start [];
            AsyncUpdate(AsyncAttrs) "async-update" at_least(1) control::async_update [];
            Call(CallAttrs) "call" at_least(0) control::call [];
            Conditional(ConditionalAttrs) "conditional" at_least(2) control::conditional [];
            CopyDone "copy-done" exactly(1) control::copy_done [];
            CopyStart(CopyStartAttrs) "copy-start" exactly(1) control::copy_start [];
            CustomCall(CustomCallAttrs) "custom-call" at_least(0) control::custom_call [];
            Domain(DomainAttrs) "domain" exactly(1) control::domain [LAYOUT];
            Fusion(FusionAttrs) "fusion" at_least(0) control::fusion [];
            GetTupleElement(GetTupleElementAttrs) "get-tuple-element" exactly(1) control::get_tuple_element [HANDS_ON];
            Infeed(InfeedAttrs) "infeed" exactly(1) control::infeed [SIDE_EFFECT];
            Map(MapAttrs) "map" at_least(1) control::map [];
            OptimizationBarrier "opt-barrier" exactly(1) control::same_as_operand [HANDS_ON LAYOUT];
            Outfeed(OutfeedAttrs) "outfeed" exactly(2) control::outfeed [SIDE_EFFECT];
            Recv(TransferAttrs) "recv" exactly(1) control::recv [SIDE_EFFECT];
            RecvDone(TransferAttrs) "recv-done" exactly(1) control::recv_done [SIDE_EFFECT];
            Send(TransferAttrs) "send" exactly(2) control::send [SIDE_EFFECT];
            SendDone(TransferAttrs) "send-done" exactly(1) control::send_done [SIDE_EFFECT];
            Tuple "tuple" at_least(0) control::tuple [HANDS_ON];
            While(WhileAttrs) "while" exactly(1) control::while_loop [];

            // Collectives.
            AllGather(AllGatherAttrs) "all-gather" at_least(1) collective::all_gather [DEVICES];
            AllGatherDone "all-gather-done" exactly(1) collective::done [SIDE_EFFECT];
            AllGatherStart(AllGatherAttrs) "all-gather-start" at_least(1) collective::all_gather_start [SIDE_EFFECT DEVICES];
            AllReduce(AllReduceAttrs) "all-reduce" at_least(1) collective::all_reduce [DEVICES LAYOUT];
            AllReduceDone "all-reduce-done" exactly(1) collective::all_reduce_done [SIDE_EFFECT];
            AllReduceStart(AllReduceAttrs) "all-reduce-start" at_least(1) collective::all_reduce_start [SIDE_EFFECT DEVICES];
            AllToAll(AllToAllAttrs) "all-to-all" at_least(1) collective::all_to_all [DEVICES];
            CollectiveBroadcast(CollectiveBroadcastAttrs) "collective-broadcast" at_least(1) collective::broadcast [SIDE_EFFECT DEVICES LAYOUT];
            CollectivePermute(PermuteAttrs) "collective-permute" at_least(1) collective::permute [DEVICES LAYOUT];
            CollectivePermuteDone "collective-permute-done" exactly(1) collective::done [SIDE_EFFECT];
            CollectivePermuteStart(PermuteAttrs) "collective-permute-start" at_least(1) collective::permute_start [SIDE_EFFECT DEVICES];
            CollectiveReduce(CollectiveReduceAttrs) "collective-reduce" at_least(1) collective::reduce [SIDE_EFFECT DEVICES LAYOUT];
            PartitionId "partition-id" exactly(0) collective::device_id [DEVICES];
            RaggedAllToAll(GroupAttrs) "ragged-all-to-all" exactly(6) collective::ragged_all_to_all [SIDE_EFFECT DEVICES];
            ReduceScatter(ReduceScatterAttrs) "reduce-scatter" at_least(1) collective::reduce_scatter [DEVICES];
            ReplicaId "replica-id" exactly(0) collective::device_id [DEVICES];

            // Random numbers.
            Rng(RngAttrs) "rng" exactly(2) random::rng [SIDE_EFFECT];
            RngBitGenerator(RngBitGeneratorAttrs) "rng-bit-generator" exactly(1) random::rng_bit_generator [];
            RngGetAndUpdateState(RngStateAttrs) "rng-get-and-update-state" exactly(0) random::rng_state [SIDE_EFFECT];

            // Linear algebra, transforms and whole norms.
            BatchNormGrad(BatchNormAttrs) "batch-norm-grad" exactly(5) linalg::batch_norm [LAYOUT];
            BatchNormInference(BatchNormAttrs) "batch-norm-inference" exactly(5) linalg::batch_norm [LAYOUT];
            BatchNormTraining(BatchNormAttrs) "batch-norm-training" exactly(3) linalg::batch_norm [LAYOUT];
            Cholesky(CholeskyAttrs) "cholesky" exactly(1) linalg::cholesky [LAYOUT];
            Fft(FftAttrs) "fft" exactly(1) linalg::fft [LAYOUT];
            TriangularSolve(TriangularSolveAttrs) "triangular-solve" exactly(2) linalg::triangular_solve [LAYOUT];
        }
    };
}
