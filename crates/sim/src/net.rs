//! Simulated connections: ordered frames that take their time, ends that break.
//!
//! A connection breaks in two ways. *Cut*: both ends hear of it at once and what was on its way is
//! lost. *Silent*: frames vanish and nobody is told, until somebody misses a heartbeat, or the
//! system gives the connection up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::effects::{Effect, Effects};
use crate::rng::Rng;

/// The state that both ends share.
#[derive(Debug, Default)]
struct Cable {
    cut: AtomicBool,
    silent: AtomicBool,
    /// Whether one of the ends was dropped.
    ended: AtomicBool,
    changed: Notify,
}

/// Breaks a connection from outside.
#[derive(Debug, Clone)]
pub(crate) struct Break(Arc<Cable>);

impl Break {
    /// Whether frames still travel.
    pub(crate) fn is_live(&self) -> bool {
        let cable = &self.0;
        ![&cable.cut, &cable.silent, &cable.ended].iter().any(|it| it.load(Ordering::Relaxed))
    }

    /// Both ends hear of it.
    pub(crate) fn cut(&self) {
        self.0.cut.store(true, Ordering::Relaxed);
        self.0.changed.notify_waiters();
    }

    /// Nobody hears of it, for so long.
    pub(crate) fn silence(&self, noticed_after: Duration) {
        self.0.silent.store(true, Ordering::Relaxed);
        let broken = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(noticed_after).await;
            broken.cut();
        });
    }
}

/// How the network behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    /// The longest a frame takes.
    pub(crate) delay_ms_max: u64,
    /// One frame in so many comes twice; 0: none.
    pub(crate) twice_in: u64,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct End {
    cable: Arc<Cable>,
    out: mpsc::UnboundedSender<(Instant, Bytes)>,
    inward: mpsc::UnboundedReceiver<(Instant, Bytes)>,
    pending: Option<(Instant, Bytes)>,
    last_out: Instant,
    weather: Weather,
    rng: Rng,
    frames_sent: u64,
    /// Whether the network repeated the last frame that was sent.
    was_repeated: bool,
    effects: Effects,
}

/// A new connection.
pub(crate) fn connect(weather: Weather, rng: &mut Rng, effects: &Effects) -> (End, End, Break) {
    let cable = Arc::new(Cable::default());
    let (left_out, right_in) = mpsc::unbounded_channel();
    let (right_out, left_in) = mpsc::unbounded_channel();
    let end = |out, inward, rng| End {
        cable: cable.clone(),
        out,
        inward,
        pending: None,
        last_out: Instant::now(),
        weather,
        rng,
        frames_sent: 0,
        was_repeated: false,
        effects: effects.clone(),
    };
    let left = end(left_out, left_in, rng.fork());
    let right = end(right_out, right_in, rng.fork());
    (left, right, Break(cable))
}

impl Drop for End {
    fn drop(&mut self) {
        self.cable.ended.store(true, Ordering::Relaxed);
    }
}

impl End {
    /// Nothing comes or goes any more.
    pub(crate) fn cut(&self) {
        Break(self.cable.clone()).cut();
    }

    /// Sends one frame.
    pub(crate) fn send(&mut self, frame: &Bytes) -> Result<(), ()> {
        if self.cable.cut.load(Ordering::Relaxed) {
            return Err(());
        }
        self.frames_sent += 1;
        self.was_repeated = false;
        if self.cable.silent.load(Ordering::Relaxed) {
            return Ok(());
        }
        // A hello opens the connection; nothing repeats it.
        let twice = self.weather.twice_in > 0
            && self.frames_sent > 2
            && self.rng.once_in(self.weather.twice_in);
        self.was_repeated = twice;
        if twice {
            self.effects.count(Effect::FrameRepeated);
        }
        for _ in 0..=u8::from(twice) {
            let delay = Duration::from_millis(self.rng.below(self.weather.delay_ms_max + 1));
            self.last_out = self.last_out.max(Instant::now() + delay);
            self.out.send((self.last_out, frame.clone())).map_err(drop)?;
        }
        Ok(())
    }

    /// Whether the network repeated the last frame that was sent.
    pub(crate) fn was_repeated(&self) -> bool {
        self.was_repeated
    }

    /// The next frame; `None` when the connection is gone.
    pub(crate) async fn receive(&mut self) -> Option<Bytes> {
        let cable = self.cable.clone();
        let cut = cable.changed.notified();
        if cable.cut.load(Ordering::Relaxed) {
            return None;
        }
        tokio::select! {
            biased;
            () = cut => None,
            frame = self.next() => frame,
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.pending.is_none() {
            self.pending = Some(self.inward.recv().await?);
        }
        if let Some((at, _)) = &self.pending {
            tokio::time::sleep_until(*at).await;
        }
        self.pending.take().map(|(_, frame)| frame)
    }
}
