//! Frames made by hand. Expected values are NumPy's.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use super::abi::{
    ARRAY, Api, ApiVersion, Array, Attributes, BUFFER, Buffer, ByteSpan, CallFrame, Context,
    EXECUTE, ErrorCreateArgs, ErrorDestroyArgs, Extension, METADATA, Metadata, MetadataExtension,
    NumThreadsArgs, STRING, ScheduleArgs, Values, XlaError, data_type,
};
use super::{NEWEST_MINOR, set_minor, tilewright_program, tilewright_reduce};

/// The ways in which a pool treats tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tasks {
    /// It runs them at once, on the thread that asks.
    Inline,
    /// It runs them on other threads.
    Threads,
    /// It keeps them until the call is over.
    Late,
    /// It refuses them.
    Refused,
}

/// A pool in the place of XLA's.
struct Pool {
    threads: i64,
    tasks: Tasks,
    kept: Vec<(super::abi::Task, *mut c_void)>,
    started: Vec<std::thread::JoinHandle<()>>,
    refused: usize,
}

impl Pool {
    fn new(threads: i64, tasks: Tasks) -> Self {
        Self { threads, tasks, kept: Vec::new(), started: Vec::new(), refused: 0 }
    }

    /// Runs what is left.
    fn end(&mut self) {
        for (task, data) in self.kept.drain(..) {
            // SAFETY: the handler scheduled the task with these data.
            unsafe { task(data) };
        }
        for thread in self.started.drain(..) {
            thread.join().expect("a thread of the pool");
        }
    }
}

unsafe extern "C" fn create(args: *mut ErrorCreateArgs) -> *mut XlaError {
    // SAFETY: the handler passes a structure with a message that ends with 0.
    let message = unsafe { CStr::from_ptr((*args).message) };
    Box::into_raw(Box::new(message.to_str().expect("UTF-8").to_owned())).cast()
}

unsafe extern "C" fn destroy(args: *mut ErrorDestroyArgs) {
    // SAFETY: the error is one that `create` or `schedule` made.
    drop(unsafe { Box::from_raw((*args).error.cast::<String>()) });
}

unsafe extern "C" fn num_threads(args: *mut NumThreadsArgs) -> *mut XlaError {
    // SAFETY: the context of all frames here is a `Pool`, which this thread owns.
    unsafe { *(*args).threads = (*(*args).context.cast::<Pool>()).threads };
    null_mut()
}

/// Data that another thread gets.
struct Sent(*mut c_void);
// SAFETY: tasks are made for other threads.
unsafe impl Send for Sent {}

unsafe extern "C" fn schedule(args: *mut ScheduleArgs) -> *mut XlaError {
    // SAFETY: as for `num_threads`; tasks are scheduled by the thread that owns the pool.
    let (pool, task, data) =
        unsafe { (&mut *(*args).context.cast::<Pool>(), (*args).task, (*args).data) };
    match pool.tasks {
        // SAFETY: the task is the handler's, with its data.
        Tasks::Inline => unsafe { task(data) },
        Tasks::Threads => {
            let data = Sent(data);
            pool.started.push(std::thread::spawn(move || {
                let data = data;
                // SAFETY: as above.
                unsafe { task(data.0) };
            }));
        }
        Tasks::Late => pool.kept.push((task, data)),
        Tasks::Refused => {
            pool.refused += 1;
            return Box::into_raw(Box::new(String::from("no pool"))).cast();
        }
    }
    null_mut()
}

fn version(major: i32) -> ApiVersion {
    ApiVersion {
        struct_size: size_of::<ApiVersion>(),
        extension_start: null_mut(),
        major,
        minor: 5,
    }
}

fn api(major: i32) -> Api {
    Api {
        struct_size: size_of::<Api>(),
        extension_start: null_mut(),
        version: version(major),
        internal: null(),
        error_create: Some(create),
        error_details: null(),
        error_destroy: Some(destroy),
        others: [null(); 8],
        schedule: Some(schedule),
        num_threads: Some(num_threads),
    }
}

/// A buffer of a frame.
#[derive(Clone)]
struct Memory {
    size: usize,
    kind: i32,
    data_type: i32,
    data: *mut c_void,
    rank: Option<i64>,
    dims: Vec<i64>,
}

fn memory<T>(data: &mut [T], data_type: i32, dims: &[i64]) -> Memory {
    let data = data.as_mut_ptr().cast();
    Memory {
        size: size_of::<Buffer>(),
        kind: BUFFER,
        data_type,
        data,
        rank: None,
        dims: dims.into(),
    }
}

/// The value of an attribute.
#[derive(Clone)]
enum Value {
    Text(&'static [u8]),
    Integers(Vec<i64>),
    Halves(Vec<i64>),
    Null(i32),
}

/// A frame in parts that a test can change.
#[derive(Clone)]
struct Call {
    handler: unsafe extern "C" fn(*mut CallFrame) -> *mut XlaError,
    size: usize,
    stage: i32,
    major: i32,
    args: Vec<Memory>,
    rets: Vec<Memory>,
    attrs: Vec<(&'static str, Value)>,
}

impl Call {
    fn new(array: Memory, result: Memory, fold: &'static str, axes: &[i64]) -> Self {
        Self {
            handler: tilewright_reduce,
            size: size_of::<CallFrame>() + size_of::<*const c_void>(),
            stage: EXECUTE,
            major: 0,
            args: vec![array],
            rets: vec![result],
            attrs: vec![
                ("axes", Value::Integers(axes.into())),
                ("fold", Value::Text(fold.as_bytes())),
            ],
        }
    }

    /// Calls the handler. Returns the message of its error.
    fn run(&self, pool: &mut Pool) -> Result<(), String> {
        let api = api(self.major);
        let buffers = |all: &[Memory]| -> Vec<Buffer> {
            let buffer = |one: &Memory| Buffer {
                struct_size: one.size,
                extension_start: null_mut(),
                data_type: one.data_type,
                data: one.data,
                rank: one.rank.unwrap_or(one.dims.len() as i64),
                dims: one.dims.as_ptr(),
            };
            all.iter().map(buffer).collect()
        };
        let (args, rets) = (buffers(&self.args), buffers(&self.rets));
        let pointers = |all: &[Buffer]| -> Vec<*const c_void> {
            all.iter().map(|one| (&raw const *one).cast()).collect()
        };
        let (arg_pointers, ret_pointers) = (pointers(&args), pointers(&rets));
        let kinds = |all: &[Memory]| -> Vec<i32> { all.iter().map(|one| one.kind).collect() };
        let (arg_kinds, ret_kinds) = (kinds(&self.args), kinds(&self.rets));
        let values = |types: &[i32], values: &[*const c_void]| Values {
            struct_size: size_of::<Values>(),
            extension_start: null_mut(),
            size: types.len() as i64,
            types: types.as_ptr(),
            values: values.as_ptr(),
        };
        let names = self.attrs.iter().map(|(name, _)| span(name.as_bytes())).collect::<Vec<_>>();
        let name_pointers: Vec<*const ByteSpan> = names.iter().map(|one| &raw const *one).collect();
        let spans: Vec<ByteSpan> = self.attrs.iter().map(|(_, value)| text_of(value)).collect();
        let arrays: Vec<Array> = self.attrs.iter().map(|(_, value)| array_of(value)).collect();
        let attribute = |(at, (_, value)): (usize, &(&str, Value))| -> (i32, *const c_void) {
            match value {
                Value::Text(_) => (STRING, (&raw const spans[at]).cast()),
                Value::Integers(_) | Value::Halves(_) => (ARRAY, (&raw const arrays[at]).cast()),
                Value::Null(kind) => (*kind, null()),
            }
        };
        let (types, pointers): (Vec<i32>, Vec<*const c_void>) =
            self.attrs.iter().enumerate().map(attribute).unzip();
        let mut frame = CallFrame {
            struct_size: self.size,
            extension_start: null_mut(),
            api: &raw const api,
            context: (&raw mut *pool).cast::<Context>(),
            stage: self.stage,
            args: values(&arg_kinds, &arg_pointers),
            rets: values(&ret_kinds, &ret_pointers),
            attrs: Attributes {
                struct_size: size_of::<Attributes>(),
                extension_start: null_mut(),
                size: types.len() as i64,
                types: types.as_ptr(),
                names: name_pointers.as_ptr(),
                values: pointers.as_ptr(),
            },
        };
        // SAFETY: the frame is as XLA makes it, but for what the handler must find out.
        let error = unsafe { (self.handler)(&raw mut frame) };
        pool.end();
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: `create` made it.
        Err(*unsafe { Box::from_raw(error.cast::<String>()) })
    }

    fn error(&self) -> String {
        self.run(&mut Pool::new(1, Tasks::Refused)).expect_err("an error")
    }
}

fn span(bytes: &[u8]) -> ByteSpan {
    ByteSpan { start: bytes.as_ptr(), len: bytes.len() }
}

fn text_of(value: &Value) -> ByteSpan {
    span(if let Value::Text(bytes) = value { bytes } else { &[] })
}

fn array_of(value: &Value) -> Array {
    match value {
        Value::Integers(all) => {
            Array { data_type: data_type::S64, size: all.len(), data: all.as_ptr().cast() }
        }
        Value::Halves(all) => {
            Array { data_type: data_type::F16, size: all.len(), data: all.as_ptr().cast() }
        }
        Value::Text(_) | Value::Null(_) => Array { data_type: 0, size: 0, data: null() },
    }
}

const X: [f32; 6] = [1.0, 5.0, 3.0, -2.0, 7.0, 7.0];

/// Calls `test` with a call that sums the rows of `X` to two results.
fn with_rows(test: impl Fn(&Call)) {
    // Far enough from each other that neither overlaps where a test moves or enlarges it.
    let mut room = [f32::NAN; 128];
    let (x, sums) = room.split_at_mut(64);
    x[..6].copy_from_slice(&X);
    let array = memory(&mut x[..6], data_type::F32, &[2, 3]);
    test(&Call::new(array, memory(&mut sums[..2], data_type::F32, &[2]), "sum", &[1]));
}

#[test]
fn numbers_are_reduced() {
    let mut x = X;
    for (fold, rows, columns) in [
        ("sum", [9.0, 12.0], [-1.0, 12.0, 10.0]),
        ("max", [5.0, 7.0], [1.0, 7.0, 7.0]),
        ("min", [1.0, -2.0], [-2.0, 5.0, 3.0]),
    ] {
        let (mut a, mut b) = ([0.0f32; 2], [0.0f32; 3]);
        let array = memory(&mut x, data_type::F32, &[2, 3]);
        let pool = &mut Pool::new(1, Tasks::Refused);
        let to = memory(&mut a, data_type::F32, &[2]);
        Call::new(array.clone(), to, fold, &[1]).run(pool).expect("rows");
        let to = memory(&mut b, data_type::F32, &[3]);
        Call::new(array, to, fold, &[0]).run(pool).expect("columns");
        assert_eq!((a, b), (rows, columns), "{fold}");
    }
}

#[test]
fn places_are_32_or_64_bits() {
    let mut x = [1.0, f32::NAN, 3.0, -2.0, 7.0, 7.0];
    let array = memory(&mut x, data_type::F32, &[2, 3]);
    let pool = &mut Pool::new(1, Tasks::Refused);
    for (fold, places) in [("argmax", [1, 1]), ("argmin", [1, 0])] {
        let (mut narrow, mut wide) = ([9i32; 2], [9i64; 2]);
        let to = memory(&mut narrow, data_type::S32, &[2]);
        Call::new(array.clone(), to, fold, &[1]).run(pool).expect("32 bits");
        let to = memory(&mut wide, data_type::S64, &[2]);
        Call::new(array.clone(), to, fold, &[1]).run(pool).expect("64 bits");
        assert_eq!((narrow.map(i64::from), wide), (places, places), "{fold}");
    }
}

#[test]
fn truth_values_are_bytes() {
    let mut x = [1u8, 0, 1, 1, 1, 1];
    let pool = &mut Pool::new(1, Tasks::Refused);
    for (fold, dims, expected) in [
        ("and", [2, 3], [0, 1]),
        ("or", [2, 3], [1, 1]),
        ("and", [2, 0], [1, 1]),
        ("or", [2, 0], [0, 0]),
    ] {
        let mut found = [9u8; 2];
        let array = memory(&mut x, data_type::PRED, &dims);
        let to = memory(&mut found, data_type::PRED, &[2]);
        Call::new(array, to, fold, &[1]).run(pool).expect("truth values");
        assert_eq!(found, expected, "{fold} of {dims:?}");
    }
}

/// Sums of nothing are 0, and extrema of nothing are errors, as in NumPy.
#[test]
fn zero_sizes() {
    let mut sums = [9.0f32; 2];
    let mut nothing = memory::<f32>(&mut [], data_type::F32, &[2, 0]);
    nothing.data = null_mut();
    let to = memory(&mut sums, data_type::F32, &[2]);
    let call = Call::new(nothing, to, "sum", &[1]);
    call.run(&mut Pool::new(1, Tasks::Refused)).expect("zeros");
    assert_eq!(sums, [0.0; 2]);
    for fold in ["max", "min"] {
        let attrs = vec![call.attrs[0].clone(), ("fold", Value::Text(fold.as_bytes()))];
        assert!(Call { attrs, ..call.clone() }.error().contains("no value over no elements"));
    }
}

/// Changes the argument and the result of a call.
type Change = fn(&mut Memory, &mut Memory);

const OTHER_BUFFERS: [(&str, Change); 16] = [
    ("elements of type 19 of XLA are not reduced", |a, _| a.data_type = 19),
    ("result has elements of type 11 of XLA, not 5", |a, _| a.data_type = data_type::S64),
    // Places are of type 5, but arrays are not.
    ("elements of type 5 of XLA are not reduced", |a, r| {
        (a.data_type, r.data_type) = (data_type::S64, data_type::S64);
    }),
    ("result has elements of type 12 of XLA, not 11", |_, r| r.data_type = data_type::F64),
    ("result has dims [3]", |_, r| r.dims = vec![3]),
    ("result has dims [2, 1]", |_, r| r.dims = vec![2, 1]),
    ("dims of the argument are negative or too large", |a, _| a.dims = vec![2, -3]),
    ("dims of the argument are negative or too large", |a, _| a.dims = vec![i64::MAX, 8]),
    ("number of dims is -1", |a, _| a.rank = Some(-1)),
    ("axis 1 is out of range for 1 dims", |a, _| a.dims = vec![6]),
    ("argument is at 0x0", |a, _| a.data = null_mut()),
    ("no multiple of 4 bytes", |a, _| a.data = a.data.wrapping_byte_add(2)),
    ("no multiple of 4 bytes", |_, r| r.data = r.data.wrapping_byte_add(1)),
    ("result lies over the argument", |a, r| r.data = a.data.wrapping_byte_add(8)),
    ("argument is no buffer of a known version", |a, _| a.size = 8),
    ("result is no buffer", |_, r| r.kind = 2),
];

#[test]
fn other_buffers_are_errors() {
    with_rows(|call| {
        for (message, change) in OTHER_BUFFERS {
            let mut call = call.clone();
            change(&mut call.args[0], &mut call.rets[0]);
            let found = call.error();
            assert!(found.contains(message), "{found}, not {message}");
            assert!(found.starts_with("tilewright_reduce: "), "{found}");
        }
    });
}

#[test]
fn other_frames_are_errors() {
    with_rows(|call| {
        let none = Call { args: Vec::new(), ..call.clone() };
        assert!(none.error().contains("there are 0 arguments, and not one"));
        let two = Call { rets: vec![call.rets[0].clone(), call.rets[0].clone()], ..call.clone() };
        assert!(two.error().contains("there are 2 results, and not one"));
        assert!(Call { stage: 1, ..call.clone() }.error().contains("called in stage 1"));
        assert!(Call { major: 1, ..call.clone() }.error().contains("version 1 of XLA's interface"));
        // Nobody to tell, and nothing done.
        let short = Call { size: 40, ..call.clone() };
        assert_eq!(short.run(&mut Pool::new(1, Tasks::Refused)), Ok(()));
    });
}

#[test]
fn other_attributes_are_errors() {
    with_rows(|call| {
        let fold = ("fold", Value::Text(b"sum"));
        let axes = ("axes", Value::Integers(vec![1]));
        for (message, attrs) in [
            ("attribute `axes` is missing", vec![fold.clone()]),
            ("attribute `fold` is missing", vec![axes.clone()]),
            ("`median` is no fold", vec![axes.clone(), ("fold", Value::Text(b"median"))]),
            ("not reduced by `and`", vec![axes.clone(), ("fold", Value::Text(b"and"))]),
            ("not reduced by `or`", vec![axes.clone(), ("fold", Value::Text(b"or"))]),
            ("attribute is no text", vec![axes.clone(), ("fold", Value::Text(b"\xff"))]),
            ("attribute is null", vec![axes.clone(), ("fold", Value::Null(STRING))]),
            ("`fold` of kind 3 is unknown", vec![axes.clone(), ("fold", Value::Null(3))]),
            ("`axes` is no array", vec![fold.clone(), ("axes", Value::Null(ARRAY))]),
            ("`axes` is no array", vec![fold.clone(), ("axes", Value::Halves(vec![1]))]),
            ("axis 2 is out of range", vec![fold.clone(), ("axes", Value::Integers(vec![2]))]),
            ("axis -1 is out of range", vec![fold.clone(), ("axes", Value::Integers(vec![-1]))]),
            ("more than once", vec![fold.clone(), ("axes", Value::Integers(vec![1, 1]))]),
            ("attribute `mode` of kind 4", vec![fold, axes, ("mode", Value::Text(b"fast"))]),
        ] {
            let found = Call { attrs, ..call.clone() }.error();
            assert!(found.contains(message), "{found}, not {message}");
        }
    });
}

#[test]
fn results_do_not_depend_on_the_pool() {
    let mut x: Vec<f32> = (0..1 << 20).map(|i| (i % 1000) as f32 * 0.25 - 100.0).collect();
    for (dims, axes, len) in [([1 << 10, 1 << 10], [1], 1 << 10), ([1 << 18, 4], [0], 4)] {
        let mut all: Vec<Vec<f32>> = Vec::new();
        for tasks in [Tasks::Refused, Tasks::Inline, Tasks::Threads, Tasks::Late] {
            for threads in [1, 2, 7] {
                let mut sums = vec![f32::NAN; len];
                let array = memory(&mut x, data_type::F32, &dims);
                let to = memory(&mut sums, data_type::F32, &[len as i64]);
                let mut pool = Pool::new(threads, tasks);
                Call::new(array, to, "sum", &axes).run(&mut pool).expect("sums");
                assert_eq!(pool.refused > 0, tasks == Tasks::Refused && threads > 1, "{tasks:?}");
                all.push(sums);
            }
        }
        let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
        let sum: f64 = all[0].iter().map(|&x| f64::from(x)).sum();
        assert!((sum / exact - 1.0).abs() < 1e-5, "{sum} is not {exact}");
        assert!(all.iter().all(|sums| *sums == all[0]), "sums differ");
    }
}

#[test]
fn the_metadata_are_told() {
    let mut metadata =
        Metadata { struct_size: size_of::<Metadata>(), api_version: version(-1), traits: 9 };
    let mut extension = MetadataExtension {
        base: Extension {
            struct_size: size_of::<MetadataExtension>(),
            kind: METADATA,
            next: null_mut(),
        },
        metadata: &raw mut metadata,
    };
    let nothing = || Values {
        struct_size: size_of::<Values>(),
        extension_start: null_mut(),
        size: 0,
        types: null(),
        values: null(),
    };
    let mut frame = CallFrame {
        struct_size: size_of::<CallFrame>(),
        extension_start: (&raw mut extension).cast(),
        api: null(),
        context: null_mut(),
        stage: EXECUTE,
        args: nothing(),
        rets: nothing(),
        attrs: Attributes {
            struct_size: size_of::<Attributes>(),
            extension_start: null_mut(),
            size: 0,
            types: null(),
            names: null(),
            values: null(),
        },
    };
    for (minor, told) in [(1, 1), (NEWEST_MINOR, NEWEST_MINOR), (99, NEWEST_MINOR)] {
        set_minor(minor);
        // SAFETY: XLA asks for metadata with such a frame.
        assert!(unsafe { tilewright_reduce(&raw mut frame) }.is_null());
        let version = &metadata.api_version;
        assert_eq!((version.major, version.minor, metadata.traits), (0, told, 0));
    }
}

/// Each row divided by its sum, and the sums of columns.
const PROGRAM: &[u8] = b"HloModule m add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] \
    add(a, b) } ENTRY e { x = f32[2,3] parameter(0) z = f32[] constant(0) s = f32[2] reduce(x, z), \
    dimensions={1}, to_apply=add t = f32[2,3] broadcast(s), dimensions={0} y = f32[2,3] divide(x, t) \
    c = f32[3] reduce(x, z), dimensions={0}, to_apply=add ROOT u = (f32[2,3], f32[3]) tuple(y, c) }";

/// Runs a test with a call of [`PROGRAM`]; returns its results.
fn with_program(test: impl FnOnce(Call)) -> ([f32; 6], [f32; 3]) {
    let mut x = [1.0f32, 2.0, 1.0, 5.0, 0.0, 5.0];
    let (mut shares, mut sums) = ([f32::NAN; 6], [f32::NAN; 3]);
    test(Call {
        handler: tilewright_program,
        args: vec![memory(&mut x, data_type::F32, &[2, 3])],
        rets: vec![
            memory(&mut shares, data_type::F32, &[2, 3]),
            memory(&mut sums, data_type::F32, &[3]),
        ],
        attrs: vec![("program", Value::Text(PROGRAM))],
        ..Call::new(
            memory(&mut [0f32], data_type::F32, &[1]),
            memory(&mut [0f32], data_type::F32, &[]),
            "sum",
            &[0],
        )
    });
    (shares, sums)
}

#[test]
fn programs_write_all_results() {
    for tasks in [Tasks::Inline, Tasks::Threads, Tasks::Late, Tasks::Refused] {
        let (shares, sums) = with_program(|call| {
            // The second call finds the program again.
            assert_eq!(call.run(&mut Pool::new(2, tasks)), Ok(()));
            assert_eq!(call.run(&mut Pool::new(2, tasks)), Ok(()));
        });
        assert_eq!(shares, [0.25, 0.5, 0.25, 0.5, 0.0, 0.5]);
        assert_eq!(sums, [6.0, 2.0, 6.0]);
    }
}

#[test]
fn other_calls_of_programs_are_errors() {
    with_program(|call| {
        let text = |text: &'static [u8]| vec![("program", Value::Text(text))];
        let same = Call { rets: vec![call.rets[0].clone(), call.args[0].clone()], ..call.clone() };
        let mut wide = call.clone();
        wide.args[0].dims = vec![3, 2];
        let mut typed = call.clone();
        typed.args[0].data_type = data_type::S32;
        let mut off = call.clone();
        off.rets[1].data = off.rets[1].data.wrapping_byte_add(2);
        // Programs over other arrays than those of the call.
        const HALF: &[u8] = b"HloModule m add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] \
            add(a, b) } ENTRY e { x = bf16[2,3] parameter(0) y = f32[2,3] convert(x) z = f32[] constant(0) \
            s = f32[3] reduce(y, z), dimensions={0}, to_apply=add n = f32[2,3] negate(y) \
            ROOT u = (f32[2,3], f32[3]) tuple(n, s) }";
        const COLUMNS: &[u8] =
            b"HloModule m add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT \
            r = f32[] add(a, b) } ENTRY e { x = f32[2,3]{0,1} parameter(0) z = f32[] constant(0) \
            c = f32[3] reduce(x, z), dimensions={0}, to_apply=add y = f32[2,3]{1,0} negate(x) \
            ROOT u = (f32[2,3]{1,0}, f32[3]) tuple(y, c) }";
        for (message, call) in [
            ("attribute `program` is missing", Call { attrs: Vec::new(), ..call.clone() }),
            ("expected", Call { attrs: text(b"HloModule"), ..call.clone() }),
            ("argument 0 of the program is bf16", Call { attrs: text(HALF), ..call.clone() }),
            ("an array that is not row major", Call { attrs: text(COLUMNS), ..call.clone() }),
            ("attribute is no text", Call { attrs: text(b"\xff"), ..call.clone() }),
            (
                "`fold` of kind 2 is unknown",
                Call { attrs: vec![("fold", Value::Null(2))], ..call.clone() },
            ),
            ("0 arguments for a program of 1", Call { args: Vec::new(), ..call.clone() }),
            (
                "1 results for a program of 2",
                Call { rets: call.rets[..1].to_vec(), ..call.clone() },
            ),
            ("a result lies over another buffer", same),
            ("argument 0 has dims [3, 2], not [2, 3]", wide),
            ("has elements of type", typed),
            ("which is no multiple of 4 bytes", off),
            ("called in stage 1", Call { stage: 1, ..call.clone() }),
        ] {
            let found = call.error();
            assert!(found.contains(message), "{found}, not {message}");
            assert!(found.starts_with("tilewright_program: "), "{found}");
        }
    });
}
