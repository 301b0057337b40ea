//! Sockets: who may open one, and how each one closes.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use relay::gate::close;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::Knocked;
use crate::{Entrance, Issued, socket};

type Client = WebSocketStream<MaybeTlsStream<TcpStream>>;

const SOON: Duration = Duration::from_secs(5);

async fn open(door: &Knocked, path: &str, who: Option<&Issued>) -> Result<Client, u16> {
    let mut request = door.ws(path).into_client_request().unwrap();
    if let Some(who) = who {
        let bearer = format!("Bearer {}", who.token).parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
    }
    match connect_async(request).await {
        Ok((client, _)) => Ok(client),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

async fn echo(client: &mut Client, text: &str) {
    client.send(Message::text(text)).await.unwrap();
    let heard = tokio::time::timeout(SOON, client.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(heard, Message::text(text));
}

async fn close_code(client: &mut Client) -> u16 {
    loop {
        let heard = tokio::time::timeout(SOON, client.next()).await.expect("not closed in time");
        match heard {
            Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
            Some(Ok(_)) => {}
            other => panic!("ended without a reason: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_socket_carries_frames_for_whoever_may_open_it() {
    let door = Knocked::new().await;

    for (path, who, entrance) in [
        ("/ws", None, Entrance::Any),
        ("/ws", Some(&door.viewer), Entrance::Any),
        ("/ws/native", Some(&door.operator), Entrance::Native),
        ("/ws/proxy", Some(&door.proxy), Entrance::Proxy),
    ] {
        let mut client = open(&door, path, who).await.unwrap();
        echo(&mut client, "hello").await;
        let opening = door.relay.state().openings.pop().unwrap();
        assert_eq!(opening.entrance, entrance);
        let credential = opening.principal.map(|principal| principal.credential);
        assert_eq!(credential, who.map(|who| who.id.clone()));
    }
    let in_query = format!("/ws?token={}", door.viewer.token);
    echo(&mut open(&door, &in_query, None).await.unwrap(), "hello").await;
}

#[tokio::test]
async fn a_goodbye_is_answered() {
    let door = Knocked::new().await;
    let mut client = open(&door, "/ws", None).await.unwrap();
    echo(&mut client, "hello").await;
    let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    client.send(Message::Close(Some(frame))).await.unwrap();
    assert_eq!(close_code(&mut client).await, 1000);
}

#[tokio::test]
async fn a_socket_is_not_opened_for_whoever_may_not() {
    let door = Knocked::new().await;

    assert_eq!(open(&door, "/ws?token=fh_wrong", None).await.err(), Some(401));
    assert_eq!(open(&door, "/ws/proxy", None).await.err(), Some(401));
    assert_eq!(open(&door, "/ws/proxy", Some(&door.owner)).await.err(), Some(403));
    let mut request = door.ws("/ws").into_client_request().unwrap();
    request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    let told = connect_async(request).await.unwrap_err();
    assert!(matches!(told, Error::Http(response) if response.status().as_u16() == 403));
}

// spec: native/credentials.6
#[tokio::test]
async fn a_revoked_credentials_sockets_close_at_once_and_others_stay() {
    let door = Knocked::new().await;
    let mut silent = open(&door, "/ws", Some(&door.operator)).await.unwrap();
    let mut talking = open(&door, "/ws", Some(&door.operator)).await.unwrap();
    let mut other = open(&door, "/ws", Some(&door.viewer)).await.unwrap();
    echo(&mut talking, "hello").await;

    let path = format!("/v1/tokens/{}", door.operator.id);
    let revoked = door.ask("DELETE", &path).bearer(&door.owner.token).send().await;
    assert_eq!(revoked.status, 200);

    assert_eq!(close_code(&mut silent).await, socket::close::REVOKED);
    assert_eq!(close_code(&mut talking).await, socket::close::REVOKED);
    echo(&mut other, "still here").await;
}

#[tokio::test]
async fn a_peer_that_takes_nothing_loses_its_socket_with_its_credential() {
    let door = Knocked::new().await;
    let mut greedy = open(&door, "/ws", Some(&door.operator)).await.unwrap();
    // More than the buffers between us hold, and never read: the echo gets stuck in its writing.
    let flood = async {
        loop {
            if greedy.feed(Message::text("x".repeat(1 << 20))).await.is_err()
                || greedy.flush().await.is_err()
            {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(300), flood).await;
    assert!(door.auth.revoke(&door.operator.id, crate::clock::now()).await.unwrap());

    assert!(tokio::time::timeout(SOON, door.running.stop()).await.unwrap());
}

// spec: native/transport.1
#[tokio::test]
async fn hostile_frames_close_with_their_codes() {
    let limit = 64 * 1024;
    let door = Knocked::with(|config| config.limits.max_frame_bytes = limit).await;

    let mut client = open(&door, "/ws", None).await.unwrap();
    echo(&mut client, &"x".repeat(limit)).await;
    client.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(close_code(&mut client).await, close::BINARY);

    let mut client = open(&door, "/ws", None).await.unwrap();
    client.send(Message::text("x".repeat(limit + 1))).await.unwrap();
    assert_eq!(close_code(&mut client).await, close::TOO_LARGE);

    // Much larger than the limit: the peer still writes when it is refused.
    let mut client = open(&door, "/ws", None).await.unwrap();
    client.send(Message::text("x".repeat(6 << 20))).await.unwrap();
    assert_eq!(close_code(&mut client).await, close::TOO_LARGE);

    let mut client = open(&door, "/ws", None).await.unwrap();
    let lone = tokio_tungstenite::tungstenite::protocol::frame::Frame::message(
        vec![0xED, 0xA0, 0x80],
        tokio_tungstenite::tungstenite::protocol::frame::coding::OpCode::Data(
            tokio_tungstenite::tungstenite::protocol::frame::coding::Data::Text,
        ),
        true,
    );
    client.send(Message::Frame(lone)).await.unwrap();
    assert_eq!(close_code(&mut client).await, socket::close::NOT_TEXT);
}

#[tokio::test]
async fn silent_sockets_are_bounded_and_strangers_cannot_take_the_places_of_friends() {
    let door = Knocked::with(|config| {
        config.limits.max_silent_strangers = 2;
        config.limits.max_silent_friends = 1;
    })
    .await;

    let mut first = open(&door, "/ws", None).await.unwrap();
    let _second = open(&door, "/ws", None).await.unwrap();
    assert_eq!(open(&door, "/ws", None).await.err(), Some(503));
    let _friend = open(&door, "/ws", Some(&door.viewer)).await.unwrap();
    assert_eq!(open(&door, "/ws", Some(&door.viewer)).await.err(), Some(503));

    // Whoever speaks gives the place back.
    echo(&mut first, "hello").await;
    open(&door, "/ws", None).await.unwrap();
}

// spec: native/close_codes.1
#[tokio::test]
async fn a_stop_tells_every_socket_and_ends() {
    let door = Knocked::new().await;
    let address = door.running.address();
    let mut one = open(&door, "/ws", Some(&door.viewer)).await.unwrap();
    let mut other = open(&door, "/ws", None).await.unwrap();
    echo(&mut one, "hello").await;

    let stopping = tokio::spawn(door.running.stop());

    assert_eq!(close_code(&mut one).await, socket::close::GOING_DOWN);
    assert_eq!(close_code(&mut other).await, socket::close::GOING_DOWN);
    drop((one, other));
    assert!(tokio::time::timeout(SOON, stopping).await.unwrap().unwrap());
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_open_socket_keeps_its_place_until_it_is_gone() {
    let door = Knocked::with(|config| config.limits.max_connections = 2).await;
    let mut one = open(&door, "/ws", None).await.unwrap();
    let other = open(&door, "/ws", None).await.unwrap();
    echo(&mut one, "hello").await;

    // The third waits in the backlog until somebody leaves.
    let third = door.ask("GET", "/healthz").send();
    let mut third = std::pin::pin!(third);
    let early = tokio::time::timeout(Duration::from_millis(200), third.as_mut()).await;
    assert!(early.is_err(), "answered beyond the bound");
    drop(other);
    assert_eq!(tokio::time::timeout(SOON, third).await.unwrap().status, 200);
}

// spec: native/limits.1
#[tokio::test]
async fn a_frame_of_five_mebibytes_is_taken_and_one_byte_more_is_not() {
    let door = Knocked::new().await;
    let mut client = open(&door, "/ws", None).await.unwrap();

    echo(&mut client, &"x".repeat(5 << 20)).await;
    client.send(Message::text("x".repeat((5 << 20) + 1))).await.unwrap();

    assert_eq!(close_code(&mut client).await, close::TOO_LARGE);
}
