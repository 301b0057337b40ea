//! A commit that failed leaves no trace, and the connection goes on from where it was.

use domain::LinkPosition;
use domain::content::{Author, Digest, Message, Part};
use domain::session::transcript;
use domain::session::{Event, Order, Recorded};
use store::Failure;

use super::*;
use crate::hub::Live;
use crate::routes::Errand;

fn says(text: &str) -> impl Fn(&Recorded) -> bool {
    let parts = Content::Open(vec![Part::Text(text.to_owned())]);
    move |recorded| {
        matches!(&recorded.event, Event::Transcript(transcript::Event::Message(message))
            if message.parts == parts)
    }
}

impl Stage {
    /// A plain proxy names no ids: the edge invents one for each message it passes on.
    async fn observe(&self, connection: &str, id: &str, text: &str) {
        let message = Message {
            id: id.into(),
            author: Author::Assistant,
            parts: Content::Open(vec![Part::Text(text.to_owned())]),
            created_at: self.clock.now(),
            run: None,
            parent: None,
            digest: Some(Digest(text.bytes().map(u64::from).sum())),
        };
        let report = Report::Message { message, has_own_id: false, echo: None };
        let word = Word { connection: connection.into(), position: None, report };
        self.tell("s1", Command::Proxy(word)).await;
    }

    async fn connect_plain(&self, connection: &str) {
        let via = Via { connection: connection.into(), link: None };
        let meta = Box::new(Meta::of_agent("demo".into()));
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        self.tell("s1", Command::Relay(up)).await;
    }

    async fn fail_a_commit(&self) {
        self.disk.fail_next(Failure::BeforeCommit);
        let (reply, answer) = oneshot::channel();
        let rename = Command::Person(ada(), Wish::Rename("lost".to_owned()));
        self.relay().tell(&"s1".into(), rename, Reply::Once(reply)).await;
        assert!(matches!(answer.await.unwrap(), Err(Denied::Failed(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_commit_does_not_disturb_a_proxy_that_re_sends_its_history() {
    let stage = Stage::new(2_000).await;
    stage.connect_plain("socket-1").await;
    for (id, text) in [("x1", "Looking."), ("x2", "Done."), ("x3", "Bye.")] {
        stage.observe("socket-1", id, text).await;
    }
    stage.connect_plain("socket-2").await;
    stage.observe("socket-2", "y1", "Looking.").await;
    stage.fail_a_commit().await;
    for (id, text) in [("y2", "Done."), ("y3", "Bye."), ("y4", "Done.")] {
        stage.observe("socket-2", id, text).await;
    }
    let ledger = stage.ledger("s1").await;
    let count = |text| ledger.iter().filter(|recorded| says(text)(recorded)).count();
    assert_eq!([count("Looking."), count("Done."), count("Bye.")], [1, 2, 1], "{ledger:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_commit_does_not_make_an_old_message_of_a_new_one() {
    let stage = Stage::new(2_000).await;
    stage.connect_plain("socket-1").await;
    stage.observe("socket-1", "x1", "Done.").await;
    stage.fail_a_commit().await;
    stage.observe("socket-1", "x2", "Done.").await;
    assert_eq!(stage.ledger("s1").await.iter().filter(|it| says("Done.")(it)).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_word_is_not_recorded_without_the_one_before_it_for_which_the_ledger_could_not_be_read() {
    let stage = Stage::new(2_000).await;
    let report = |connection: &str, number: u64| {
        let message = Message {
            id: format!("x{number}").as_str().into(),
            author: Author::Assistant,
            parts: Content::Open(vec![Part::Text(format!("{number}"))]),
            created_at: stage.clock.now(),
            run: None,
            parent: None,
            digest: None,
        };
        let report = Report::Message { message, has_own_id: true, echo: None };
        let position = Some(LinkPosition { link: "journal-1".into(), number });
        Command::Proxy(Word { connection: connection.into(), position, report })
    };
    let session = SessionId::from("s1");
    stage.up("s1").await;
    stage.fail_a_commit().await;
    stage.disk.set_full(true);
    let first = stage.relay().command(&session, report("socket-1", 1)).await;
    assert!(matches!(first, Err(Denied::Failed(_))), "{first:?}");
    stage.disk.set_full(false);
    let second = stage.relay().command(&session, report("socket-1", 2)).await;
    assert!(matches!(second, Err(Denied::Failed(_))), "{second:?}");
    // The next connection tells both again.
    let via = Via { connection: "socket-2".into(), link: Some("journal-1".into()) };
    let meta = Box::new(Meta::of_agent("demo".into()));
    let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
    stage.tell("s1", Command::Relay(up)).await;
    for number in [1, 2] {
        stage.tell("s1", report("socket-2", number)).await;
    }
    let ledger = stage.ledger("s1").await;
    let said: Vec<_> = ["1", "2"].map(|text| ledger.iter().position(says(text))).to_vec();
    assert!(said[0].is_some() && said[0] < said[1], "{ledger:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_order_that_left_before_a_failed_commit_does_not_leave_again() {
    let stage = Stage::new(2_000).await;
    let mut orders = stage.relay().routes().open(&"socket-1".into(), Arc::default());
    stage.connect_plain("socket-1").await;
    stage.send("s1", "m1").await;
    assert!(matches!(orders.try_recv(), Ok(Errand::Order(_, Order::Deliver { .. }))));
    stage.fail_a_commit().await;
    stage.send("s1", "m2").await;
    let Ok(Errand::Order(_, Order::Deliver { send, .. })) = orders.try_recv() else { panic!() };
    assert_eq!(send.id.as_str(), "m2");
    assert!(orders.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_commit_was_recorded_but_reported_as_failed_leaves_once() {
    let stage = Stage::new(2_000).await;
    let mut orders = stage.relay().routes().open(&"socket-1".into(), Arc::default());
    stage.connect_plain("socket-1").await;
    stage.disk.fail_next(Failure::AfterCommit);
    assert!(stage.try_send("s1", "m1").await.is_err());
    stage.send("s1", "m2").await;
    let mut left = vec![];
    while let Ok(Errand::Order(_, Order::Deliver { send, .. })) = orders.try_recv() {
        left.push(send.id.to_string());
    }
    assert_eq!(left, ["m1", "m2"]);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_was_recorded_but_reported_as_failed_reaches_its_machine_and_its_asker() {
    let stage = Stage::new(2_000).await;
    let mut orders = stage.relay().routes().open(&"socket-1".into(), Arc::default());
    let via = Via { connection: "socket-1".into(), link: None };
    let (machine, offer) = ("attic".into(), fleet::Offer::default());
    stage.relay().fleet(fleet::Command::Connected { via, machine, offer }).await.unwrap();
    let mut watch = stage.relay().watch();
    stage.disk.fail_next(Failure::AfterCommit);
    let wish = fleet::LaunchWish {
        request: "r1".into(),
        agent: "demo".into(),
        workspace_path: None,
        window_title: None,
        machine: Some("attic".into()),
        model: None,
        permission_mode: None,
        has_worktree: false,
        earlier: None,
        arguments: vec![],
    };
    let told = stage.relay().fleet(fleet::Command::Launch(ada(), Box::new(wish))).await;
    assert!(matches!(told, Err(Denied::Failed(_))));
    let sent = tokio::time::timeout(SOON, orders.recv()).await.unwrap();
    assert!(matches!(sent, Some(Errand::Launch(launch)) if launch.request.as_str() == "r1"));
    let shown = watch.recv().await.unwrap();
    assert!(matches!(shown.first(), Some(Live::Fleet(_))));
}
