//! Measures forms of a module in turn until it is known which is the fastest.

use super::stats::{FEWEST, median, median_interval, spread};

/// The number of the lane of the original.
const ORIGINAL: usize = 0;
/// How many times as long as it should a race may take to come to [`FEWEST`] rounds.
const PATIENCE: f64 = 3.0;
/// The most rounds of a race.
const MOST_ROUNDS: usize = 200;
/// Either of two lanes may win that differ by less than this factor.
const SAME: f64 = 1.02;
/// After this many rounds, it is enough to know that one lane beats the original.
const ENOUGH_ROUNDS: usize = 16;

/// How a race is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RaceOptions {
    /// How many times faster than the original the median of a candidate's ratios must be for it to win. Beyond
    /// doubt, it must be faster at all.
    pub least_gain: f64,
    /// The seconds of all runs after which the race ends; the first three rounds may take three times as long.
    pub seconds: f64,
}

impl Default for RaceOptions {
    fn default() -> Self {
        Self { least_gain: 1.02, seconds: 10.0 }
    }
}

/// Where a lane stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is still measured, or was when the race ended.
    Racing,
    /// It was not fast enough.
    Slower,
    /// It could not be run, or must not win.
    Out(String),
    /// It won.
    Won,
}

/// The times of one form.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// How often it was measured.
    pub runs: usize,
    /// The median of its times.
    pub seconds: Option<f64>,
    /// Half of what the middle half of its times spans, as a fraction of the median.
    pub spread: f64,
    /// How many times faster than the original it is: the median over the rounds.
    pub ratio: Option<f64>,
}

/// Forms of a module that are run in turn. The first is the original, which wins unless it is beaten.
///
/// In each round every form runs once, in alternating order, so that what slows the machine down for a
/// while slows all of them. What counts is the ratio of two times of one round. A candidate leaves the race
/// once the median of its ratios is below the least gain, or below the leader's, beyond doubt; the race ends
/// when one is left, or when its time is over.
#[derive(Clone, Debug)]
pub struct Race {
    options: RaceOptions,
    /// The times of each lane, one for each round until it left the race.
    times: Vec<Vec<f64>>,
    standing: Vec<Standing>,
    /// The lanes that are left to run in this round, in reverse.
    left: Vec<usize>,
    /// The times of this round, by lane.
    round: Vec<Option<f64>>,
    rounds: usize,
    seconds: f64,
    winner: Option<usize>,
}

impl Race {
    /// Returns a race of the original and some candidates.
    pub fn new(candidates: usize, options: RaceOptions) -> Self {
        let lanes = candidates.saturating_add(1);
        let mut race = Self {
            options,
            times: vec![Vec::new(); lanes],
            standing: vec![Standing::Racing; lanes],
            left: Vec::new(),
            round: vec![None; lanes],
            rounds: 0,
            seconds: 0.0,
            winner: None,
        };
        race.begin_round();
        race
    }

    /// Returns the lane to run next; `None` once the race is decided.
    pub fn next(&self) -> Option<usize> {
        if self.winner.is_some() { None } else { self.left.last().copied() }
    }

    /// Returns the lane that won, once the race is decided. The original is lane 0.
    pub fn winner(&self) -> Option<usize> {
        self.winner
    }

    /// Records the seconds of a run of [`Race::next`]. A time that is not positive, such as from a clock that
    /// was set back, spoils its round, which does not count.
    pub fn record(&mut self, seconds: f64) {
        let Some(lane) = self.next() else { return };
        self.left.pop();
        if let Some(time) = self.round.get_mut(lane) {
            *time = (seconds.is_finite() && seconds > 0.0).then_some(seconds);
        }
        self.seconds += if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
        if self.left.is_empty() {
            self.end_round();
        }
    }

    /// Takes a candidate out of the race, and says why: it failed, or its results differ. If this is the
    /// original, the race ends.
    pub fn take_out(&mut self, lane: usize, why: impl Into<String>) {
        let Some(standing) = self.standing.get_mut(lane).filter(|_| self.winner.is_none()) else {
            return;
        };
        *standing = Standing::Out(why.into());
        self.left.retain(|&left| left != lane);
        if lane == ORIGINAL || !self.is_contested() {
            self.win(ORIGINAL);
        } else if self.left.is_empty() {
            self.end_round();
        }
    }

    /// Ends the race with what is known: the first candidate wins that is about as fast as the fastest.
    pub fn end(&mut self) {
        if self.winner.is_some() {
            return;
        }
        let faster: Vec<usize> = self.racing().filter(|&lane| self.beats_original(lane)).collect();
        let best = faster.iter().map(|&lane| self.median_ratio(lane)).fold(0.0, f64::max);
        let winner = faster.into_iter().find(|&lane| self.median_ratio(lane) * SAME >= best);
        self.win(winner.unwrap_or(ORIGINAL));
    }

    /// Returns how many rounds count so far.
    pub fn rounds(&self) -> usize {
        self.times.first().map_or(0, Vec::len)
    }

    /// Returns where a lane stands.
    pub fn standing(&self, lane: usize) -> Option<&Standing> {
        self.standing.get(lane)
    }

    /// Returns the times of each lane.
    pub fn lanes(&self) -> Vec<Lane> {
        let lane = |(lane, times): (usize, &Vec<f64>)| Lane {
            runs: times.len(),
            seconds: median(times),
            spread: spread(times),
            ratio: median(&self.ratios(ORIGINAL, lane)),
        };
        self.times.iter().enumerate().map(lane).collect()
    }

    fn begin_round(&mut self) {
        self.round.fill(None);
        let racing = |lane: &usize| self.standing.get(*lane) == Some(&Standing::Racing);
        self.left = (0..self.times.len()).filter(racing).collect();
        if self.rounds.is_multiple_of(2) {
            self.left.reverse();
        }
        if !self.is_contested() {
            self.win(ORIGINAL);
        }
    }

    fn end_round(&mut self) {
        let racing = |lane: usize| self.standing.get(lane) == Some(&Standing::Racing);
        let is_whole =
            (0..self.times.len()).all(|l| !racing(l) || self.round.get(l) != Some(&None));
        if is_whole {
            for (times, time) in self.times.iter_mut().zip(&self.round) {
                times.extend(*time);
            }
        }
        self.rounds += 1;
        self.decide();
        if self.winner.is_none() {
            let most = self.options.seconds;
            let is_known = self.rounds() >= FEWEST;
            let is_over = (self.seconds >= most && is_known)
                || self.seconds >= PATIENCE * most
                || self.rounds >= MOST_ROUNDS;
            if is_over { self.end() } else { self.begin_round() }
        }
    }

    /// Takes out the candidates that are too slow beyond doubt, and ends the race if the fastest beats the
    /// original and is left alone, or enough was measured.
    fn decide(&mut self) {
        let is_below = |interval: Option<(f64, f64)>, bound: f64| {
            interval.is_some_and(|(_, high)| high < bound)
        };
        let least = self.options.least_gain;
        for lane in self.racing().collect::<Vec<_>>() {
            if is_below(median_interval(&self.ratios(ORIGINAL, lane)), least) {
                self.set_standing(lane, Standing::Slower);
            }
        }
        let Some(leader) = self.leader() else { return self.win(ORIGINAL) };
        for lane in self.racing().filter(|&lane| lane != leader).collect::<Vec<_>>() {
            if is_below(median_interval(&self.ratios(leader, lane)), 1.0) {
                self.set_standing(lane, Standing::Slower);
            }
        }
        let is_enough = self.rounds() >= ENOUGH_ROUNDS;
        if (is_enough || self.racing().count() == 1) && self.beats_original(leader) {
            self.end();
        }
    }

    /// Returns the candidate whose median ratio is the largest.
    fn leader(&self) -> Option<usize> {
        // `max_by` returns the last of equals: in reverse order, the first lane.
        let by_ratio =
            |&a: &usize, &b: &usize| self.median_ratio(a).total_cmp(&self.median_ratio(b));
        self.racing().rev().max_by(by_ratio)
    }

    /// Returns the median of how many times faster than the original a lane is; 0 before the first round.
    fn median_ratio(&self, lane: usize) -> f64 {
        median(&self.ratios(ORIGINAL, lane)).unwrap_or(0.0)
    }

    fn beats_original(&self, lane: usize) -> bool {
        let interval = median_interval(&self.ratios(ORIGINAL, lane));
        interval.is_some_and(|(low, _)| low > 1.0)
            && self.median_ratio(lane) >= self.options.least_gain
    }

    /// Returns the candidates that are still in the race.
    fn racing(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let all = self.standing.iter().enumerate().skip(ORIGINAL + 1);
        all.filter(|(_, standing)| **standing == Standing::Racing).map(|(lane, _)| lane)
    }

    fn is_contested(&self) -> bool {
        self.racing().next().is_some()
    }

    /// Returns how many times faster than `than` a lane was in each round that both ran in.
    fn ratios(&self, than: usize, lane: usize) -> Vec<f64> {
        let of = |lane: usize| self.times.get(lane).map_or(&[][..], Vec::as_slice);
        of(than).iter().zip(of(lane)).map(|(than, own)| than / own).collect()
    }

    fn set_standing(&mut self, lane: usize, standing: Standing) {
        if let Some(old) = self.standing.get_mut(lane) {
            *old = standing;
        }
    }

    fn win(&mut self, lane: usize) {
        self.winner = Some(lane);
        if self.standing.get(lane) == Some(&Standing::Racing) {
            self.set_standing(lane, Standing::Won);
        }
        if lane != ORIGINAL && self.standing.first() == Some(&Standing::Racing) {
            self.set_standing(ORIGINAL, Standing::Slower);
        }
    }
}
