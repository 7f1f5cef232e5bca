use std::io::Read;
fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (kind, rest) = line.split_once(' ').unwrap();
        let (from, to) = rest.split_once(' ').unwrap();
        let mut bytes = Vec::new();
        std::fs::File::open(from).unwrap().read_to_end(&mut bytes).unwrap();
        let module = match kind {
            "t2p" => match tilewright_text::parse(std::str::from_utf8(&bytes).unwrap()) {
                Ok(p) => p.module,
                Err(e) => {
                    println!("FAIL {from}: parse {e}");
                    continue;
                }
            },
            _ => match tilewright_proto::decode(&bytes) {
                Ok(p) => p,
                Err(e) => {
                    println!("FAIL {from}: {e}");
                    continue;
                }
            },
        };
        if kind == "p2t" {
            std::fs::write(to, tilewright_text::print(&module, &Default::default()).unwrap())
                .unwrap();
            continue;
        }
        match tilewright_proto::encode(&module) {
            Ok(b) => std::fs::write(to, b).unwrap(),
            Err(e) => println!("FAIL {from}: {e}"),
        }
    }
}
