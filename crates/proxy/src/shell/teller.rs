//! Asks agents whose files we cannot read for their conversations, and caches the answer for a
//! moment, because starting a program for it takes seconds.
//!
//! **Invariant**: an agent gets one request at a time; concurrent requests share its answer.
//!
//! Not here: the dialogue (`processes`), conversations in files (`conversations`).

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, Instant};

use agents::Summary;
use domain::AgentType;
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait. Who asks beyond waits before it asks.
const ASKS_MAX: usize = 64;
/// How long what an agent said is said again. The pages of one list belong together.
const FRESH_FOR: Duration = Duration::from_secs(60);

enum Ask {
    Tell {
        agent: AgentType,
        answer: oneshot::Sender<Vec<Summary>>,
    },
    /// There may be a conversation more.
    Forget,
}

/// Asks.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    asks: mpsc::Sender<Ask>,
}

impl Teller {
    /// What an agent keeps, as it said at most a minute ago.
    pub(super) async fn told(&self, agent: &AgentType) -> Vec<Summary> {
        let (answer, told) = oneshot::channel();
        let _ = self.asks.send(Ask::Tell { agent: agent.clone(), answer }).await;
        told.await.unwrap_or_default()
    }

    /// A session began or ended here, so what was said may be old.
    pub(super) fn forget(&self) {
        // At the bound it is only late: nothing is said again for long.
        let _ = self.asks.try_send(Ask::Forget);
    }
}

/// A teller, and the work that it needs done.
pub(super) fn teller<F, T>(ask_agent: F) -> (Teller, impl Future<Output = ()>)
where
    F: Fn(AgentType) -> T,
    T: Future<Output = Vec<Summary>>,
{
    let (asks, asked) = mpsc::channel(ASKS_MAX);
    (Teller { asks }, serve(asked, ask_agent, FRESH_FOR))
}

/// Answers until nobody asks any more. The agents are those of the catalog, so what is remembered
/// is bounded with it.
async fn serve<F, T>(mut asked: mpsc::Receiver<Ask>, ask_agent: F, fresh_for: Duration)
where
    F: Fn(AgentType) -> T,
    T: Future<Output = Vec<Summary>>,
{
    let mut known: BTreeMap<AgentType, (Instant, Vec<Summary>)> = BTreeMap::new();
    while let Some(ask) = asked.recv().await {
        let Ask::Tell { agent, answer } = ask else {
            known.clear();
            continue;
        };
        let remembered = known.get(&agent).filter(|(at, _)| at.elapsed() < fresh_for);
        let told = if let Some((_, told)) = remembered {
            told.clone()
        } else {
            let told = ask_agent(agent.clone()).await;
            // None may also mean that it could not say.
            if !told.is_empty() {
                known.insert(agent, (Instant::now(), told.clone()));
            }
            told
        };
        let _ = answer.send(told);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn summary(id: &str) -> Summary {
        Summary { id: id.to_owned(), title: None, workspace: None, updated_at: None }
    }

    /// How often agents were started for these questions; an empty one is to forget.
    async fn started(fresh_for: Duration, agents: &[&str]) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let ask_agent = move |agent: AgentType| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { vec![summary(agent.as_str())] }
        };
        let (asks, asked) = mpsc::channel(1);
        let serving = tokio::spawn(serve(asked, ask_agent, fresh_for));
        let teller = Teller { asks };
        for agent in agents {
            if agent.is_empty() {
                teller.asks.send(Ask::Forget).await.unwrap();
                continue;
            }
            assert_eq!(teller.told(&(*agent).into()).await, [summary(agent)]);
        }
        drop(teller);
        serving.await.unwrap();
        count.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn a_second_list_starts_no_program() {
        assert_eq!(started(FRESH_FOR, &["opencode", "opencode", "other", "opencode"]).await, 2);
    }

    #[tokio::test]
    async fn what_was_said_long_ago_is_asked_anew() {
        assert_eq!(started(Duration::ZERO, &["opencode", "opencode"]).await, 2);
        assert_eq!(started(FRESH_FOR, &["opencode", "", "opencode"]).await, 2);
    }
}
