//! Tests every error and its message.

use crate::common::{F32, Message, computation, instruction, main_of, module, parameter, shape};
use tilewright_proto::{ProtoError, decode, encode};

/// Fails to read the bytes: the whole text of the error.
fn refused(bytes: &[u8]) -> String {
    decode(bytes).expect_err("something is wrong with it").to_string()
}

fn says(bytes: &[u8], expected: &str) {
    let found = refused(bytes);
    assert!(found.starts_with(expected), "{found}\nis not\n{expected}");
    assert!(found.contains("; "), "{found}: it does not say what to do");
}

fn negate(id: i64, operand: i64) -> Message {
    instruction("y", "negate", id).ints(36, &[operand])
}

#[test]
fn a_sound_one_is_read() {
    let bytes = main_of(1, &[parameter(), negate(1, 0)]);
    assert_eq!(decode(&bytes).expect("a module").instruction_count(), 2);
}

#[test]
fn instructions_may_come_in_any_order() {
    let bytes = main_of(1, &[negate(1, 0), parameter()]);
    let module = decode(&bytes).expect("a module");
    let entry = module.entry().expect("an entry");
    let names: Vec<&str> = module.instructions(entry).map(|id| module.name_of(id)).collect();
    assert_eq!(names, ["x", "y"]);
    // And so may computations.
    let call = instruction("y", "call", 1).ints(36, &[0]).ints(38, &[1]);
    let main = computation("main", 0, 1, &[parameter(), call]);
    let callee = computation("f", 1, 2, &[instruction("z", "parameter", 2)]);
    let module = decode(&module_of(&[main, callee])).expect("a module");
    let names = module.computations().iter().map(|&id| module.computation(id).name().to_owned());
    assert_eq!(names.collect::<Vec<_>>(), ["f", "main"]);
}

fn module_of(computations: &[Message]) -> Vec<u8> {
    module(computations).0
}

#[test]
fn references() {
    says(
        &main_of(1, &[parameter(), negate(1, 7)]),
        "computations[0].instructions[1] (`y`): it refers to 7, which is no instruction",
    );
    says(
        &main_of(1, &[parameter(), negate(1, 1)]),
        "computations[0].instructions[1] (`y`): it needs its own result",
    );
    says(
        &main_of(0, &[parameter(), parameter()]),
        "computations[0].instructions[1] (`x`): a second instruction with the id 0",
    );
    says(&main_of(9, &[parameter()]), "computations[0].root_id: there is no instruction 9");
    says(
        &module_of(&[computation("main", 5, 0, &[parameter()])]),
        "entry_computation_id: there is no computation 0",
    );
    says(&module_of(&[]), "entry_computation_id: there is no computation 0");
    let control = parameter().ints(37, &[4]);
    says(&main_of(0, &[control]), "computations[0].instructions[0] (`x`): it refers to 4");
}

#[test]
fn calls() {
    let call = |callees: &[i64]| instruction("y", "call", 1).ints(36, &[0]).ints(38, callees);
    let main = |callees: &[i64]| main_of(1, &[parameter(), call(callees)]);
    says(&main(&[3]), "computations[0]: `main`: it calls 3, which is not there");
    says(&main(&[0]), "computations[0]: `main`: it calls itself");
    says(&main(&[]), "computations[0].instructions[1] (`y`): attribute `to_apply` is missing");
    let callee = |id| computation("f", id, 2, &[instruction("z", "parameter", 2)]);
    let two = [callee(1), callee(2), computation("main", 0, 1, &[parameter(), call(&[1, 2])])];
    says(
        &module_of(&two),
        "computations[2].instructions[1].called_computation_ids (`y`): \
         `call` takes 1 computations, not 2",
    );
    says(
        &module_of(&[callee(1), callee(1)]),
        "computations[1]: `f`: a second computation with the id 1",
    );
}

#[test]
fn parameters() {
    says(
        &main_of(0, &[parameter().int(9, 1)]),
        "computations[0]: parameter 1 of `main` is defined twice or leaves a gap",
    );
    let twice = [parameter(), instruction("z", "parameter", 1)];
    says(&main_of(0, &twice), "computations[0]: parameter 0 of `main` is defined twice");
}

#[test]
fn schedules() {
    let sequence = |ids: &[i64]| Message::new().message(2, &Message::new().ints(1, ids));
    let scheduled = |ids: &[i64]| {
        let schedule = Message::new().message(1, &sequence(ids));
        let main = computation("main", 0, 1, &[parameter(), negate(1, 0)]);
        module(&[main]).message(7, &schedule).0
    };
    assert!(decode(&scheduled(&[0, 1])).expect("a module").header.is_scheduled);
    says(&scheduled(&[0, 9]), "computations[0]: the schedule names 9 twice, or it is no");
    says(&scheduled(&[0, 0]), "computations[0]: the schedule names 0 twice");
    says(
        &scheduled(&[1, 0]),
        "computations[0].instructions[1] (`y`): the schedule has it before what it needs",
    );
}

#[test]
fn instructions() {
    let at = "computations[0].instructions[0]";
    let broken = |message: Message, expected: &str| says(&main_of(0, &[message]), expected);
    broken(instruction("x", "negat", 0), &format!("{at}.opcode (`x`): there is no opcode `negat`"));
    broken(Message::new().text(1, "x").text(2, "parameter"), &format!("{at} (`x`): the shape is"));
    broken(instruction("c", "constant", 0), &format!("{at}.literal (`c`): the value is missing"));
    broken(instruction("x", "iota", 0), &format!("{at} (`x`): attribute `iota_dimension` is"));
    broken(
        instruction("x", "rng-get-and-update-state", 0).bytes(66, b"?"),
        &format!("{at} (`x`): it cannot be decoded"),
    );
    broken(Message(vec![0x0b]), &format!("{at}: this is no protobuf message"));
    let compare = instruction("x", "compare", 0).text(63, "LTE");
    broken(compare, &format!("{at} (`x`): attribute `direction` must be"));
    let fft = instruction("x", "fft", 0).int(31, 9);
    broken(fft, &format!("{at}.fft_type (`x`): there is no FFT type 9"));
    let tail = "it may be of a newer XLA than this version of tilewright knows";
    assert!(refused(&main_of(0, &[instruction("x", "negat", 0)])).ends_with(tail));
}

#[test]
fn shapes_and_values() {
    let at = "computations[0].instructions[0]";
    let of = |shape: Message| {
        let message = Message::new().text(1, "x").text(2, "parameter").message(3, &shape);
        main_of(0, &[message])
    };
    says(
        &of(shape(99, &[])),
        &format!("{at}.shape.element_type (`x`): there is no element type 99"),
    );
    says(&of(shape(F32, &[2, -1])), &format!("{at}.shape.dimensions[1] (`x`): a dim of size -1"));
    let layout = |order: &[i64]| {
        Message::new().int(2, F32).ints(3, &[2]).message(5, &Message::new().ints(1, order))
    };
    says(
        &of(layout(&[1])),
        &format!("{at}.shape.layout.minor_to_major[0] (`x`): there is no dim 1"),
    );
    says(&of(layout(&[0, 1])), &format!("{at}.shape.layout.minor_to_major (`x`): 2 dims for an"));
    says(&of(shape(F32, &[2]).ints(6, &[1, 0])), &format!("{at}.shape.is_dynamic_dimension (`x`)"));
    let constant = |element: i64, values: Message| {
        let literal = values.message(1, &shape(element, &[2]));
        main_of(0, &[instruction("c", "constant", 0).message(8, &literal)])
    };
    says(&constant(F32, Message::new()), &format!("{at}.literal (`c`): 0 elements for f32[2]"));
    says(
        &constant(10, Message::new().bytes(11, b"abc")),
        &format!("{at}.literal (`c`): an odd number"),
    );
    says(&constant(15, Message::new().bytes(12, &[0; 12])), &format!("{at}.literal (`c`): an odd"));
}

#[test]
fn shardings() {
    let at = "computations[0].instructions[0].sharding";
    let of = |sharding: Message| main_of(0, &[parameter().message(40, &sharding)]);
    let inner = Message::new().int(1, 2);
    says(
        &of(Message::new().int(1, 2).message(5, &inner)),
        &format!("{at}.tuple_shardings[0] (`x`): a"),
    );
    says(
        &of(Message::new().int(1, 77)),
        &format!("{at}.type (`x`): there is no type of sharding 77"),
    );
    says(&of(Message::new().int(1, 1)), &format!("{at}.tile_assignment_devices (`x`)"));
    let axis = Message::new().int(1, 3);
    let named = Message::new().message(2, &Message::new()).message(4, &axis);
    says(
        &of(Message::new().message(14, &named)),
        &format!(
            "{at}.named_sharding.replicated_axes[0].mesh_axis_index (`x`): the mesh has no axis 3"
        ),
    );
    let iota = Message::new().int(1, 3).ints(3, &[4]).ints(9, &[4]).ints(10, &[1]);
    says(&of(iota), &format!("{at}.iota_transpose_perm (`x`): [1] is no permutation"));
}

/// Tests modules that cannot be written.
#[test]
fn writing() {
    let refused = |text: &str| -> ProtoError {
        encode(&tilewright_text::parse(text).expect("HLO text").module).expect_err("refused")
    };
    let elided = refused("HloModule m\nENTRY e {\n  ROOT c = f32[9]{0} constant({...})\n}\n");
    assert_eq!(elided.path, "computations[0].instructions[0].literal");
    assert_eq!(elided.instruction.as_deref(), Some("c"));
    assert!(elided.to_string().contains("print the module with large constants"), "{elided}");
    let unknown = refused("HloModule m, vendor={1}\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n");
    assert!(unknown.to_string().contains("`vendor`"), "{unknown}");
    let padded =
        refused("HloModule m\nENTRY e {\n  ROOT x = f32[2]{0:P(3)V(inf)} parameter(0)\n}\n");
    assert_eq!(padded.path, "host_program_shape.parameters[0].layout.padding_value");
    let none = encode(&tilewright_ir::Module::new("m")).expect_err("refused");
    assert_eq!(none.to_string(), "the module has no entry; set one");
}

#[test]
fn every_attribute_has_its_place() {
    // Each attribute in an op's text needs a place in proto. The fixtures test that attributes
    // are written and read back; this test finds those without a place.
    let lost = "has no known place";
    let unknown = "HloModule m\nENTRY e {\n  ROOT x = f32[] parameter(0), vendor={1}\n}\n";
    let unknown = tilewright_text::parse(unknown).expect("HLO text").module;
    let error = encode(&unknown).expect_err("refused");
    assert!(error.message.contains(lost), "{error}");
    let (mut seen, mut wrong) = (0, Vec::new());
    for &opcode in tilewright_ir::Opcode::ALL {
        let message = instruction("x", opcode.name(), 0);
        let attributes = opcode.attrs().len();
        let Err(error) = decode(&main_of(0, &[message])) else {
            seen += attributes;
            continue;
        };
        // One that cannot be read hides those after it. The op is made of them once all are read.
        let are_read =
            error.message.starts_with("attribute `") || error.message.contains(" takes ");
        if error.message.contains(lost) || !(are_read || attributes <= 1) {
            wrong.push((opcode, error.message));
        } else {
            seen += attributes;
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    println!("{seen} attributes");
    assert!(seen >= 90, "{seen} attributes");
}
