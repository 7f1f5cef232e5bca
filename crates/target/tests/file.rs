//! Tests the reading of target files, and the errors of bad ones.

use tilewright_target::reductions::Reductions;
use tilewright_target::{Alignment, Target, TargetError};

const TPU: &str = include_str!("../machines/tpu-like.toml");

fn error(text: &str) -> String {
    Target::from_toml(text).unwrap_err().to_string()
}

/// Returns the error about the built-in file with one line replaced.
fn with(line: &str, replacement: &str) -> String {
    assert!(TPU.contains(line), "{line}");
    error(&TPU.replace(line, replacement))
}

#[test]
fn builtins_are_read_by_name() {
    let names: Vec<_> = Target::builtin_names().collect();
    let known = [
        "cpu",
        "linear",
        "mlu-like",
        "tpu-like",
        "tpu-v5e",
        "xla-cpu-0.10",
        "xla-cpu-0.12",
        "xla-cpu-0.9",
        "xla-gpu-h100",
    ];
    assert_eq!(names, known);
    for name in names {
        let target = Target::builtin(name).unwrap();
        assert_eq!(target.name, name);
        assert_eq!(target.check(), Ok(()));
    }
    assert!(Target::builtin(Target::DEFAULT).is_ok());
    let tpu = Target::from_toml(TPU).unwrap();
    assert_eq!(tpu.alignment, Alignment::Tiles);
    assert_eq!((tpu.lanes, tpu.sublanes, tpu.vector_bytes()), (128, 8, 4096));
    assert_eq!(tpu.reshape_pin_cycles, 2.0);
}

#[test]
fn unknown_names_list_the_known() {
    assert_eq!(
        Target::builtin("gpu").unwrap_err().to_string(),
        "no built-in target is called `gpu`; there are `cpu`, `linear`, `mlu-like`, \
         `tpu-like`, `tpu-v5e`, `xla-cpu-0.10`, `xla-cpu-0.12`, `xla-cpu-0.9`, `xla-gpu-h100`, or write \
         a target file"
    );
}

#[test]
fn numbers_that_make_no_sense_are_named() {
    assert_eq!(
        with("lanes = 128", "lanes = 0"),
        "line 6: `lanes` is 0; give a whole number from 1 to 65536"
    );
    assert_eq!(
        with("sublanes = 8", "sublanes = -8"),
        "line 7: `sublanes` is -8; give a whole number from 1 to 4096"
    );
    assert_eq!(
        with("load_slots = 2", "load_slots = 2.0"),
        "line 21: `load_slots` is 2.0; give a whole number from 1 to 1024"
    );
    assert_eq!(
        with("lane_move_cycles = 1", "lane_move_cycles = nan"),
        "line 23: `lane_move_cycles` is NaN; give a number from 0 to 1000000000000"
    );
    assert_eq!(
        with("lane_move_cycles = 1", "lane_move_cycles = -0.5"),
        "line 23: `lane_move_cycles` is -0.5; give a number from 0 to 1000000000000"
    );
    for (value, shown) in [("0.99", "0.99"), ("1001", "1001"), ("nan", "NaN")] {
        assert_eq!(
            with("least_gain = 1.021", &format!("least_gain = {value}")),
            format!("line 41: `least_gain` is {shown}; give a number from 1 to 1000")
        );
    }
    assert_eq!(
        with("hbm_bytes_per_cycle = 546", "hbm_bytes_per_cycle = inf"),
        "line 12: `hbm_bytes_per_cycle` is inf; give a number from 0.000001 to 1000000000000"
    );
    assert_eq!(
        with("hbm_bytes_per_cycle = 546", "hbm_bytes_per_cycle = 0"),
        "line 12: `hbm_bytes_per_cycle` is 0; give a number from 0.000001 to 1000000000000"
    );
    assert_eq!(
        with("lane_bits = 32", "lane_bits = 24"),
        "line 8: `lane_bits` is 24; give a power of two from 8 to 128"
    );
    assert_eq!(
        with("pack_min_bits = 4", "pack_min_bits = 64"),
        "line 9: `pack_min_bits` is 64; give no more than `lane_bits`, which is 32"
    );
}

#[test]
fn lanes_need_not_be_a_power_of_two() {
    let odd = Target::from_toml(&TPU.replace("lanes = 128", "lanes = 100")).unwrap();
    assert_eq!(odd.vector_bytes(), 3200);
}

#[test]
fn values_of_the_wrong_type_are_named() {
    assert_eq!(
        with("lanes = 128", "lanes = '128'"),
        "line 6: `lanes` is the string \"128\"; give a whole number from 1 to 65536"
    );
    assert_eq!(
        with("shares_sweeps = true", "shares_sweeps = 1"),
        "line 16: `shares_sweeps` is 1; give true or false"
    );
    assert_eq!(
        with("fuses_shared = true", "fuses_shared = 'yes'"),
        "line 17: `fuses_shared` is the string \"yes\"; give true or false"
    );
    assert_eq!(
        with("alignment = \"tiles\"", "alignment = \"rows\""),
        "line 5: `alignment` is the string \"rows\"; give \"none\" or \"tiles\""
    );
    assert_eq!(
        with("name = \"tpu-like\"", "name = ' '"),
        "line 3: `name` is the string \" \"; give a string that is not empty"
    );
    assert_eq!(
        with("lanes = 128", "lanes = [128]"),
        "line 6: `lanes` is an array; give a whole number from 1 to 65536"
    );
}

#[test]
fn unknown_and_missing_keys_are_all_named() {
    assert_eq!(
        with("lanes = 128", "lane = 128\nclock_ghz = 1.5"),
        "line 6: `lane` is no key of a target; did you mean `lanes`?\n\
         line 7: `clock_ghz` is no key of a target; remove it\n\
         `lanes` is missing; give it, or a `base` to inherit from"
    );
    assert!(
        with("vector_registers", "vector_register").contains("did you mean `vector_registers`?")
    );
    let all = error("");
    // Measured tables may be missing.
    assert_eq!(all.lines().count(), Target::KEYS.len() - 3);
    assert!(
        all.starts_with("`name` is missing; give it, or a `base` to inherit from\n`description`"),
        "{all}"
    );
}

#[test]
fn a_file_inherits_what_it_leaves_out() {
    let mine = Target::from_toml("base = \"cpu\"\nname = \"mine\"\nlanes = 16\n").unwrap();
    let mut cpu = Target::builtin("cpu").unwrap();
    assert_eq!((cpu.lanes, mine.lanes), (8, 16));
    (cpu.name, cpu.lanes) = ("mine".to_owned(), 16);
    assert_eq!(mine, cpu);
    // `base` may stand anywhere, and is no field of a target.
    let last = Target::from_toml(&format!("{TPU}base = \"linear\"\n")).unwrap();
    assert_eq!(last, Target::builtin("tpu-like").unwrap());
}

#[test]
fn errors_of_files_that_inherit() {
    assert_eq!(
        error("lanes = 4\nbase = \"gpu\"\n"),
        "line 2: `base` is \"gpu\"; give the name of a built-in target: `cpu`, `linear`, \
         `mlu-like`, `tpu-like`, `tpu-v5e`, `xla-cpu-0.10`, `xla-cpu-0.12`, `xla-cpu-0.9`, \
         `xla-gpu-h100`"
    );
    assert_eq!(
        error("base = 1\nlanes = 0"),
        "line 1: `base` is no string; give the name of a built-in target\n\
         line 2: `lanes` is 0; give a whole number from 1 to 65536"
    );
    assert_eq!(
        error("bose = \"cpu\"").lines().next().unwrap(),
        "line 1: `bose` is no key of a target; did you mean `base`?"
    );
    // One of the two keys is inherited.
    let packed = "; give no more than `lane_bits`, which is";
    assert_eq!(
        error("base = \"cpu\"\npack_min_bits = 64"),
        format!("line 2: `pack_min_bits` is 64{packed} 32")
    );
}

/// A template is the target that it is made from, and so it is with every key uncommented.
#[test]
fn templates_load_to_their_target() {
    for name in Target::builtin_names() {
        let target = Target::builtin(name).unwrap();
        let template = Target::template(name).unwrap();
        assert_eq!(Target::from_toml(&template).unwrap(), target);
        let is_key =
            |line: &str| Target::KEYS.iter().any(|key| line.starts_with(&format!("#{key} = ")));
        let lines = template.lines().filter(|line| !line.starts_with("base"));
        let full: String = lines
            .map(|line| if is_key(line) { &line[1..] } else { line })
            .collect::<Vec<_>>()
            .join("\n");
        // Measured tables are not among the keys that a template shows.
        let mut bare = target.clone();
        bare.reductions = Reductions::default();
        bare.programs.clear();
        bare.slow_ops.clear();
        assert_eq!(Target::from_toml(&full).unwrap(), bare, "{full}");
        // A single key that is uncommented counts.
        let one = template.replace("#lanes = ", "lanes = 1");
        assert_ne!(Target::from_toml(&one).unwrap().lanes, target.lanes);
    }
    let linear = Target::template("linear").unwrap();
    assert!(
        linear.contains(
            "\n\n# Vectors loaded from vector memory per cycle.\n\
             # Give a whole number from 1 to 1024.\n#load_slots = 2\n\n"
        ),
        "{linear}"
    );
    assert!(Target::template("gpu").unwrap_err().to_string().contains("`mlu-like`"));
}

#[test]
fn bad_toml_is_located() {
    assert!(with("lanes = 128", "lanes = ").starts_with("line 6, column 9: "));
    assert_eq!(with("lanes = 128", "lanes = 128\nlanes = 4"), "line 7, column 1: duplicate key");
    assert_eq!(error("a = [[["), "line 1, column 8: unclosed array, expected `]`");
}

#[test]
fn hostile_files_give_short_answers() {
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(matches!(Target::from_toml(&deep), Err(TargetError::Syntax { .. })));
    let many: String = (0..100_000).map(|i| format!("k{i} = {i}\n")).collect();
    let said = error(&many);
    assert_eq!(said.lines().count(), 49);
    assert!(
        said.ends_with(&format!("and {} problems more", 100_000 + Target::KEYS.len() - 3 - 48))
    );
    let long = format!("\"{}\\n\" = 1", "x".repeat(1_000_000));
    assert!(error(&long).lines().next().unwrap().len() < 100);
}

#[test]
fn programs_have_times() {
    let program = |key: &str, value: &str| {
        let mut keys = [
            ("reductions", "2"),
            ("rows", "[16, 128]"),
            ("least_bytes", "1e7"),
            ("compiled", "1.5"),
            ("kernel", "1.0"),
        ];
        keys.iter_mut().filter(|(known, _)| *known == key).for_each(|one| one.1 = value);
        let keys = keys.map(|(key, value)| format!("{key} = {value}")).join(", ");
        Target::from_toml(&format!("base = \"cpu\"\nprograms = [{{ {keys} }}]\n"))
    };
    let times = program("", "").unwrap().programs;
    let [time] = times.as_slice() else { panic!("{times:?}") };
    assert!(time.fits(2, 16, 1e7) && time.fits(9, 128, 1e9));
    assert!(!time.fits(1, 16, 1e7) && !time.fits(2, 15, 1e7) && !time.fits(2, 129, 1e7));
    assert!(!time.fits(2, 16, 9e6));
    for key in ["compiled", "kernel"] {
        for bad in ["0.0", "-1.0", "nan", "inf"] {
            let said = program(key, bad).unwrap_err().to_string();
            assert!(
                said.starts_with("line 2: `programs` has a program whose `compiled`"),
                "{said}"
            );
        }
    }
    assert!(program("least_bytes", "-1.0").is_err());
    let said = program("rows", "16").unwrap_err().to_string();
    assert!(said.starts_with("line 2: `programs` is no list of programs: "), "{said}");
}

#[test]
fn slow_ops_have_times() {
    let slow = |ops: &str, times: &str| {
        let entry = format!("ops = {ops}, times = {times}, instead = \"a gather\"");
        Target::from_toml(&format!("base = \"cpu\"\nslow_ops = [{{ {entry} }}]\n"))
    };
    let list = slow("[\"scatter\"]", "40").unwrap().slow_ops;
    assert_eq!((list[0].ops[0].as_str(), list[0].times), ("scatter", 40.0));
    for (ops, times) in
        [("[]", "40"), ("[\"scater\"]", "40"), ("[\"sort\"]", "0.5"), ("[\"sort\"]", "nan")]
    {
        let said = slow(ops, times).unwrap_err().to_string();
        assert!(said.starts_with("line 2: `slow_ops` has an entry without `instead`"), "{said}");
    }
    // An entry is about ops or about large arrays.
    let large = slow("[], least_bytes = 4096", "2").unwrap().slow_ops;
    assert_eq!((large[0].ops.len(), large[0].least_bytes), (0, 4096));
    let both = slow("[\"sort\"], least_bytes = 4096", "2").unwrap_err().to_string();
    assert!(both.contains("or with both"), "{both}");
    let said = slow("\"sort\"", "2").unwrap_err().to_string();
    assert!(said.starts_with("line 2: `slow_ops` is no list of ops: "), "{said}");
}

#[test]
fn fields_set_by_hand_are_checked() {
    let mut target = Target::builtin("tpu-like").unwrap();
    target.lanes = 0;
    target.transcendental_cycles = f64::NAN;
    assert_eq!(
        target.check().unwrap_err().to_string(),
        "`lanes` is 0; give a whole number from 1 to 65536\n\
         `transcendental_cycles` is NaN; give a number from 0 to 1000000000000"
    );
    target.vector_memory_bytes = u64::MAX;
    assert!(target.check().is_err());
    // Unchecked, it still does not panic.
    target.sublanes = 0;
    target.lane_bits = 0;
    let shape =
        tilewright_ir::shape::ArrayShape::new(tilewright_ir::element::ElementType::F32, [9]);
    assert_ne!(target.footprint(&shape).vectors, 0);
}

/// The table of fields in docs/targets.md has a row for each key with the
/// numbers of the built-in targets.
#[test]
fn the_docs_have_every_key_and_number() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/targets.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let tables: Vec<toml::Table> = ["tpu-like", "mlu-like", "cpu", "linear"]
        .map(|name| toml::Table::try_from(Target::builtin(name).unwrap()).unwrap())
        .into();
    for key in Target::KEYS {
        let start = format!("| `{key}` |");
        let row = docs.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("docs/targets.md has no row for {key}"));
        if ["name", "description", "reductions", "programs", "slow_ops"].contains(key) {
            continue;
        }
        let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
        // The key, what it is and its unit come first.
        let numbers = &cells[3..];
        assert_eq!(numbers.len(), tables.len(), "{row}");
        for (table, cell) in tables.iter().zip(numbers) {
            let said = cell.replace(['_', '`'], "");
            let value = table[*key].to_string().replace('"', "");
            assert_eq!(said, value.trim_end_matches(".0"), "{row}");
        }
    }
}
