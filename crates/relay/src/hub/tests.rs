use domain::passing::{Delta, Passing, Voice};
use domain::{Content, Sequence};

use super::*;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Words in the making that take about this much in memory.
fn burst(bytes: usize) -> Vec<Live> {
    let words = Content::Open("x".repeat(bytes / TIMES_IN_MEMORY));
    let delta = Delta { message: "m".into(), part: 0, voice: Voice::Text, offset: 0, words };
    let passing = Passing { after: Sequence(0), delta };
    let native = Cache::default();
    vec![Live::Passing(Arc::new(Passed {
        session: "s".into(),
        passing,
        native,
        visitors: Encoded::default(),
    }))]
}

/// The bytes that are still in memory, by the ring's own measure.
fn alive_bytes(pointers: &[Weak<Vec<Live>>]) -> usize {
    let alive = pointers.iter().filter_map(Weak::upgrade);
    alive.map(|burst| burst.iter().map(Live::bytes).sum::<usize>()).sum()
}

fn kept(hub: &Hub) -> Vec<Weak<Vec<Live>>> {
    hub.0.kept.lock().unwrap().bursts.iter().map(|(burst, _)| Arc::downgrade(burst)).collect()
}

#[test]
fn a_watcher_that_never_reads_keeps_no_more_than_the_bytes_of_the_ring() {
    let hub = Hub::default();
    let mut deaf = hub.watch();
    let mut pointers = vec![];
    for _ in 0..1_000 {
        hub.publish(burst(64 * KIB));
        pointers.extend(kept(&hub).pop());
    }
    let alive = alive_bytes(&pointers);
    assert!(alive <= RING_BYTES_MAX, "{alive} bytes are alive");
    assert!(alive > RING_BYTES_MAX / 2, "only {alive} bytes are alive");
    assert_eq!(deaf.try_recv().unwrap().unwrap_err(), Missing::Lagged);
}

#[test]
fn a_watcher_that_keeps_up_hears_everything_in_order() {
    let hub = Hub::default();
    let mut watch = hub.watch();
    for number in 0..1_000 {
        hub.publish(burst(32 * KIB + 3 * number));
        let heard = watch.try_recv().unwrap().unwrap();
        assert_eq!(heard[0].bytes(), burst(32 * KIB + 3 * number)[0].bytes());
    }
    assert!(watch.try_recv().is_none());
}

#[test]
fn a_burst_that_is_larger_than_the_ring_still_passes() {
    let hub = Hub::default();
    let (mut watch, mut slow) = (hub.watch(), hub.watch());
    hub.publish(burst(KIB));
    watch.try_recv().unwrap().unwrap();
    hub.publish(burst(2 * RING_BYTES_MAX));
    let heard = watch.try_recv().unwrap().unwrap();
    assert!(heard[0].bytes() > RING_BYTES_MAX);
    // The one before it had to go.
    assert_eq!(slow.try_recv().unwrap().unwrap_err(), Missing::Lagged);
    // And it goes with the next.
    drop(heard);
    hub.publish(burst(KIB));
    assert!(alive_bytes(&kept(&hub)) < MIB);
    watch.try_recv().unwrap().unwrap();
}

#[test]
fn more_bursts_than_the_ring_has_places_for_are_missed() {
    let hub = Hub::default();
    let mut slow = hub.watch();
    for _ in 0..=RING_BURSTS {
        hub.publish(burst(1));
    }
    assert_eq!(kept(&hub).len(), RING_BURSTS);
    assert_eq!(slow.try_recv().unwrap().unwrap_err(), Missing::Lagged);
    assert!(slow.try_recv().unwrap().is_ok());
}

#[test]
fn whoever_reads_a_burst_keeps_it_while_it_reads() {
    let hub = Hub::default();
    let mut watch = hub.watch();
    hub.publish(burst(KIB));
    let heard = watch.try_recv().unwrap().unwrap();
    hub.publish(burst(RING_BYTES_MAX));
    hub.publish(burst(RING_BYTES_MAX));
    assert_eq!(heard.len(), 1);
    assert_eq!(watch.try_recv().unwrap().unwrap_err(), Missing::Lagged);
    assert!(watch.try_recv().unwrap().is_ok());
}

#[test]
fn nothing_is_kept_when_nobody_watches() {
    let hub = Hub::default();
    hub.publish(burst(KIB));
    assert!(kept(&hub).is_empty());
}
