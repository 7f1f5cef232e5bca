use std::io::Read;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let mut source = String::new();
    std::fs::File::open(&path).unwrap().read_to_string(&mut source).unwrap();
    if std::env::args().nth(2).is_some() {
        for _ in 0..std::env::args().nth(2).unwrap().parse::<usize>().unwrap() {
            std::hint::black_box(tilewright_text::parse(&source).unwrap());
        }
        return;
    }
    let t = std::time::Instant::now();
    match tilewright_text::parse_and_verify(&source) {
        Ok(m) => println!("ok {:?} {}", t.elapsed(), m.instruction_count()),
        Err(e) => println!(
            "{}\n{:?}",
            tilewright_text::render::Renderer::new().invalid("in.hlo", &source, &e),
            t.elapsed()
        ),
    }
}
