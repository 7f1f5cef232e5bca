//! Timelines for Perfetto and `chrome://tracing`.

use serde::Serialize;
use tilewright_sim::Lane;

use super::Simulated;

/// A timeline of the machine's units in the format of Chrome's trace events: a track for the
/// core and one for copies. Its microseconds stand for cycles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    #[serde(rename = "traceEvents")]
    events: Vec<TraceEvent>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum TraceEvent {
    /// The name of a track.
    Name { name: &'static str, ph: &'static str, pid: u32, tid: u32, args: TrackName },
    /// An event with a start and a duration.
    Span { name: String, ph: &'static str, pid: u32, tid: u32, ts: f64, dur: f64, args: LineArgs },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct TrackName {
    name: &'static str,
}

/// The line of the kernel's text.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct LineArgs {
    line: usize,
}

const TRACKS: [(Lane, &str); 2] = [(Lane::Core, "core"), (Lane::Copies, "copies")];

impl Trace {
    /// The timeline of a run.
    pub fn new(simulated: &Simulated) -> Self {
        let names = (1..).zip(TRACKS).map(|(tid, (_, name))| TraceEvent::Name {
            name: "thread_name",
            ph: "M",
            pid: 1,
            tid,
            args: TrackName { name },
        });
        let spans = simulated.kernels.iter().flat_map(|kernel| {
            kernel.events.iter().map(|event| TraceEvent::Span {
                name: kernel.name.clone(),
                ph: "X",
                pid: 1,
                tid: (1..)
                    .zip(TRACKS)
                    .find(|(_, (lane, _))| *lane == event.lane)
                    .map_or(0, |t| t.0),
                ts: kernel.from + event.from,
                dur: event.to - event.from,
                args: LineArgs { line: event.line },
            })
        });
        Self { events: names.chain(spans).collect() }
    }
}
