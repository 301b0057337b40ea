//! The frames of a session: those of its target that live in the same process.
//!
//! A frame in another process is a separate target with its own session.
//!
//! Not here: scripts in a frame (`place`).

use serde_json::{Value, json};

use crate::{Browser, Fault, SessionId};

/// Frames that are looked at; a page with more is not an IDE's.
const FRAMES_MAX: usize = 512;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Names it within the browser.
    pub id: String,
    /// The frame around it; none for the session's outermost.
    pub parent: Option<String>,
    /// The name of its element, or the element's id where it has no name.
    pub name: String,
    /// Its address.
    pub url: String,
}

/// Every frame of a session, the outermost first.
pub async fn all(browser: &Browser, session: &SessionId) -> Result<Vec<Frame>, Fault> {
    let method = "Page.getFrameTree";
    let answer = browser.call(Some(session), method, json!({})).await?;
    let mut frames = Vec::new();
    let mut open = vec![(None, &answer["frameTree"])];
    while let Some((parent, tree)) = open.pop() {
        let Some(id) = tree["frame"]["id"].as_str().filter(|_| frames.len() < FRAMES_MAX) else {
            continue;
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let frame = &tree["frame"];
        let url = text(&frame["url"]) + frame["urlFragment"].as_str().unwrap_or_default();
        frames.push(Frame { id: id.to_owned(), parent, name: text(&frame["name"]), url });
        let children = tree["childFrames"].as_array().into_iter().flatten().rev();
        open.extend(children.map(|child| (Some(id.to_owned()), child)));
    }
    if frames.is_empty() {
        return Err(Fault::Incomplete { method: method.to_owned(), missing: "a frame" });
    }
    Ok(frames)
}

/// The id of the frame of this name, or of the outermost without a name. The first in the order
/// of the document counts.
pub async fn find(
    browser: &Browser,
    session: &SessionId,
    frame_name: Option<&str>,
) -> Result<String, Fault> {
    let frames = all(browser, session).await?;
    let fits = |frame: &Frame| frame_name.is_none_or(|name| frame.name == name);
    let none = || Fault::NoFrame(frame_name.unwrap_or_default().to_owned());
    frames.into_iter().find(fits).map(|frame| frame.id).ok_or_else(none)
}
