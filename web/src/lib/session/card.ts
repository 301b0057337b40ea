// What a list shows of a session, after an event.
//
// Not here: its words (story.ts).
import type { SessionEvent } from "./reduce";
import type { Card, Described, World } from "./state";

/** The card of a session as the relay describes it; questions and configuration are told apart. */
export function cardFromSession(session: Described, before: Card | null): Card {
  const run = session.run_id ? { id: session.run_id, began_at: null } : null;
  return {
    session,
    sequence: session.last_sequence ?? 0,
    prompts: before?.prompts ?? [],
    config: before?.config ?? null,
    run: run && before?.run?.id === run.id ? before.run : run,
    failed: run ? false : (before?.failed ?? false),
    reason: session.status_reason ?? null,
    closed: false,
    touched_at: session.last_seen_at ?? session.activity?.updated_at ?? before?.touched_at ?? null,
  };
}

/** Changes the card, which is the caller's own copy. */
export function applyToCard(card: Card, event: SessionEvent): void {
  card.touched_at = event.server_ts ?? card.touched_at;
  switch (event.type) {
    case "session_up": {
      const { title, archived } = card.session;
      card.session = { title, archived, ...event.session, session_id: card.session.session_id };
      card.closed = false;
      card.reason = null;
      return;
    }
    case "session_down":
      card.session = { ...card.session, status: "disconnected" };
      card.reason = null;
      return;
    case "session_status":
      // A change of activity says nothing of it: then the old words stand.
      if (event.reason || event.status !== card.session.status) card.reason = event.reason ?? null;
      card.session = {
        ...card.session,
        status: event.status,
        activity: event.activity ?? card.session.activity,
      };
      return;
    case "session_closed":
      card.closed = true;
      card.prompts = [];
      card.run = null;
      return;
    case "session_renamed":
      card.session = { ...card.session, title: event.title };
      return;
    case "session_archived":
      card.session = { ...card.session, archived: event.archived };
      return;
    case "agent_config": {
      const { type: _type, protocol_version: _version, ...config } = event;
      card.config = config;
      return;
    }
    case "permission_prompt": {
      const others = card.prompts.filter((it) => it.prompt_id !== event.prompt_id);
      const session_id = card.session.session_id;
      const asked_at = event.server_ts ?? null;
      card.prompts = [...others, { expires_at: deadline(event), ...event, session_id, asked_at }];
      return;
    }
    case "permission_prompt_expired":
    case "permission_prompt_resolved":
      card.prompts = card.prompts.filter((it) => it.prompt_id !== event.prompt_id);
      return;
    case "run_started":
      card.run = { id: event.run_id, began_at: event.server_ts ?? null };
      card.failed = false;
      return;
    case "run_ended":
      if (card.run?.id === event.run_id) card.run = null;
      card.failed = event.outcome === "failed";
      return;
    case "message_failed":
      card.failed = event.error.code !== "discarded" || card.failed;
      return;
    case "message_accepted":
    case "message_delivered":
    case "message_event":
    case "tool_call":
    case "tool_update":
    case "queue_update":
    case "plan":
    case "notice":
    case "context_usage":
      return;
  }
}

/** A live prompt says how long it waits, one in an ack until when. */
export function deadline(event: { timeout_ms?: number; server_ts?: string }): string | undefined {
  if (event.timeout_ms === undefined || !event.server_ts) return undefined;
  return new Date(Date.parse(event.server_ts) + event.timeout_ms).toISOString();
}

export type Standing = "waiting" | "failed" | "running" | "quiet" | "archived";

/** What a list sorts by: those that wait for a person first. */
export function standing(card: Card): Standing {
  if (card.prompts.length > 0) return "waiting";
  if (card.session.archived) return "archived";
  if (card.failed) return "failed";
  if (isRunning(card)) return "running";
  return "quiet";
}

export function isRunning(card: Card): boolean {
  return card.run !== null && card.session.status !== "disconnected";
}

const ORDER: Standing[] = ["waiting", "failed", "running", "quiet", "archived"];

/** The cards in the order of a list: by standing, then the newest first. */
export function inOrder(all: World["cards"]): Card[] {
  const cards = Object.values(all).filter((card) => !card.closed);
  const newest = (a: Card, b: Card) => (b.touched_at ?? "").localeCompare(a.touched_at ?? "");
  return cards.sort(
    (a, b) => ORDER.indexOf(standing(a)) - ORDER.indexOf(standing(b)) || newest(a, b),
  );
}

/** Every question that waits, the oldest first. */
export function waiting(cards: World["cards"]): Card["prompts"] {
  const all = Object.values(cards).flatMap((card) => (card.closed ? [] : card.prompts));
  return all.sort((a, b) => (a.asked_at ?? "").localeCompare(b.asked_at ?? ""));
}
