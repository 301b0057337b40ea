//! An isolated world in one frame: the same document, but separate scripts and globals.
//!
//! **Invariant:** a script runs in the document that the place was created for, or not at all.
//! After a reload the place is [`Fault::Gone`].
//!
//! Not here: choosing the frame (`frames`), what the scripts do.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Browser, CALL_TIMEOUT, Fault, SessionId};

/// The name of our world.
pub const WORLD: &str = "farhelm";

/// Where scripts of ours run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The target's session.
    pub session: SessionId,
    /// The world's number within the session. Numbers are used again, so it is only for
    /// comparing with events.
    pub context: i64,
    /// The frame.
    pub frame: String,
    /// The world's name for scripts, never used again; empty where the browser did not tell.
    pub unique: String,
}

/// Our world in a frame; made if it is not there yet.
pub async fn world(browser: &Browser, session: &SessionId, frame: &str) -> Result<Place, Fault> {
    world_named(WORLD, browser, session, frame).await
}

/// A world of this name in a frame. All who name it the same share it, whichever connection they
/// came by.
pub async fn world_named(
    name: &str,
    browser: &Browser,
    session: &SessionId,
    frame: &str,
) -> Result<Place, Fault> {
    // Without it nobody tells of contexts that go, and no binding works after a reload.
    browser.call(Some(session), "Runtime.enable", json!({})).await?;
    if let Some(place) = browser.place_named(name, session, frame).await? {
        return Ok(place);
    }
    let method = "Page.createIsolatedWorld";
    let params = json!({"frameId": frame, "worldName": name, "grantUniveralAccess": false});
    let answer = browser.call(Some(session), method, params).await?;
    let missing = || Fault::Incomplete { method: method.to_owned(), missing: "a context" };
    let context = answer["executionContextId"].as_i64().ok_or_else(missing)?;
    let told = browser.contexts(session).await?;
    let told = told.into_iter().find(|told| told.number == context && told.frame == frame);
    let unique = told.map(|told| told.unique).unwrap_or_default();
    Ok(Place { session: session.clone(), context, frame: frame.to_owned(), unique })
}

impl Browser {
    /// Our world in a frame if it is there: made by [`world`], or by a script that the browser
    /// runs in every new document in a world of this name.
    pub async fn place(&self, session: &SessionId, frame: &str) -> Result<Option<Place>, Fault> {
        self.place_named(WORLD, session, frame).await
    }

    async fn place_named(
        &self,
        name: &str,
        session: &SessionId,
        frame: &str,
    ) -> Result<Option<Place>, Fault> {
        let contexts = self.contexts(session).await?;
        let ours =
            contexts.into_iter().rev().find(|told| told.world == name && told.frame == frame);
        Ok(ours.map(|told| Place {
            session: session.clone(),
            context: told.number,
            frame: told.frame,
            unique: told.unique,
        }))
    }

    /// Whether a place's document is still there, as far as was told.
    pub async fn is_there(&self, place: &Place) -> Result<bool, Fault> {
        let contexts = self.contexts(&place.session).await?;
        let same = |told: &crate::contexts::Context| {
            told.number == place.context
                && told.frame == place.frame
                && (place.unique.is_empty() || told.unique == place.unique)
        };
        Ok(contexts.iter().any(same))
    }

    /// The value of an expression; of its promise if that is wanted.
    pub async fn evaluate(
        &self,
        place: &Place,
        expression: &str,
        await_promise: bool,
    ) -> Result<Value, Fault> {
        let mut params = json!({
            "expression": expression,
            "awaitPromise": await_promise,
            "returnByValue": true,
        });
        name_context(&mut params, place, "contextId");
        let answer = self.run(CALL_TIMEOUT, place, "Runtime.evaluate", params).await?;
        Ok(value(answer))
    }

    /// The value that a function has for these arguments; a promise is waited for.
    pub async fn call_function(
        &self,
        place: &Place,
        function_declaration: &str,
        args: &[Value],
    ) -> Result<Value, Fault> {
        self.call_function_within(CALL_TIMEOUT, place, function_declaration, args).await
    }

    /// The same, with a time of its own.
    pub async fn call_function_within(
        &self,
        within: Duration,
        place: &Place,
        function_declaration: &str,
        args: &[Value],
    ) -> Result<Value, Fault> {
        let params = call_params(place, function_declaration, args, true);
        Ok(value(self.run(within, place, "Runtime.callFunctionOn", params).await?))
    }

    /// The object that a function gives for these arguments, as a handle for other calls
    /// (`DOM.getContentQuads`, …); `None` for `null`. Let it go with [`Browser::release`].
    pub async fn call_for_object(
        &self,
        place: &Place,
        function_declaration: &str,
        args: &[Value],
    ) -> Result<Option<String>, Fault> {
        let params = call_params(place, function_declaration, args, false);
        let answer = self.run(CALL_TIMEOUT, place, "Runtime.callFunctionOn", params).await?;
        Ok(answer["result"]["objectId"].as_str().map(str::to_owned))
    }

    /// Lets an object go.
    pub async fn release(&self, place: &Place, object: &str) -> Result<(), Fault> {
        let params = json!({"objectId": object});
        self.call(Some(&place.session), "Runtime.releaseObject", params).await.map(drop)
    }

    async fn run(
        &self,
        within: Duration,
        place: &Place,
        method: &str,
        params: Value,
    ) -> Result<Value, Fault> {
        // A number may belong to another document by now.
        if place.unique.is_empty() && !self.is_there(place).await? {
            return Err(Fault::Gone);
        }
        let answer = match self.call_within(within, Some(&place.session), method, params).await {
            Err(Fault::Refused { message, .. }) if is_gone(&message) => {
                return Err(Fault::Gone);
            }
            other => other?,
        };
        match answer.get("exceptionDetails") {
            None => Ok(answer),
            Some(details) => Err(Fault::Threw(exception(details))),
        }
    }
}

fn call_params(place: &Place, function: &str, args: &[Value], by_value: bool) -> Value {
    let args: Vec<Value> = args.iter().map(|value| json!({"value": value})).collect();
    let mut params = json!({
        "functionDeclaration": function,
        "arguments": args,
        "awaitPromise": true,
        "returnByValue": by_value,
    });
    name_context(&mut params, place, "executionContextId");
    params
}

fn name_context(params: &mut Value, place: &Place, by_number: &str) {
    if place.unique.is_empty() {
        params[by_number] = place.context.into();
    } else {
        params["uniqueContextId"] = place.unique.as_str().into();
    }
}

fn value(mut answer: Value) -> Value {
    answer.pointer_mut("/result/value").map(Value::take).unwrap_or_default()
}

fn is_gone(message: &str) -> bool {
    // "Cannot find context with specified id", "uniqueContextId not found",
    // "Execution context was destroyed.", "Inspected target navigated or closed"
    let message = message.to_ascii_lowercase();
    message.contains("context") || message.contains("navigated or closed")
}

fn exception(details: &Value) -> String {
    let thrown = &details["exception"];
    let words = thrown["description"].as_str().or_else(|| thrown["value"].as_str());
    words.or_else(|| details["text"].as_str()).unwrap_or("no error message").to_owned()
}
