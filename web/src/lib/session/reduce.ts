// The world after a frame.
//
// Invariant: pure. An event that is told twice changes nothing the second time, whether it comes
// live, in a history, or both.
// Not here: sockets (connection/), words that this page itself has not sent yet (connection/outbox).
import type { RelayFrame } from "../wire/generated";
import { applyToCard, cardFromSession } from "./card";
import { applyDelta, applyToStory } from "./story";
import { emptyStory, type Card, type Story, type World } from "./state";

/** An event of a session: it has a place in its ledger. */
export type SessionEvent = Extract<RelayFrame, { type: SessionEventType }>;

const SESSION_EVENTS = [
  "session_up",
  "session_down",
  "session_status",
  "session_closed",
  "session_renamed",
  "session_archived",
  "message_accepted",
  "message_delivered",
  "message_failed",
  "message_event",
  "permission_prompt",
  "permission_prompt_expired",
  "permission_prompt_resolved",
  "agent_config",
  "tool_call",
  "tool_update",
  "run_started",
  "run_ended",
  "queue_update",
  "plan",
  "notice",
  "context_usage",
] as const;

type SessionEventType = (typeof SESSION_EVENTS)[number];
const EVENT_TYPES: ReadonlySet<string> = new Set(SESSION_EVENTS);

export function isSessionEvent(frame: RelayFrame): frame is SessionEvent {
  return EVENT_TYPES.has(frame.type);
}

/** What a reduction needs besides the frame. */
export interface Circumstance {
  /** Sessions of which every event is told on this connection. */
  followed: ReadonlySet<string>;
  now_ms: number;
}

/** One frame. */
export function reduce(world: World, frame: RelayFrame, circumstance: Circumstance): World {
  return reduceAll(world, [frame], circumstance);
}

/** Several frames at once: what is copied is copied once. */
export function reduceAll(world: World, frames: RelayFrame[], circumstance: Circumstance): World {
  const batch = new Batch(world);
  for (const frame of frames) apply(batch, frame, circumstance);
  return batch.world;
}

/** Copies each card and story at most once while it changes. */
class Batch {
  world: World;
  private readonly cards = new Set<string>();
  private readonly stories = new Set<string>();
  /** Lists that belong to this batch alone. */
  readonly own = new WeakSet<object>();

  constructor(world: World) {
    this.world = { ...world };
  }

  card(id: string): Card | null {
    const card = this.world.cards[id];
    if (!card) return null;
    if (this.cards.has(id)) return card;
    this.putCard(id, { ...card });
    return this.world.cards[id] ?? null;
  }

  putCard(id: string, card: Card): void {
    if (this.cards.size === 0) this.world.cards = { ...this.world.cards };
    this.cards.add(id);
    this.world.cards[id] = card;
  }

  dropCard(id: string): void {
    if (this.cards.size === 0) this.world.cards = { ...this.world.cards };
    this.cards.add(id);
    delete this.world.cards[id];
  }

  story(id: string): Story {
    const story = this.world.stories[id];
    if (story && this.stories.has(id)) return story;
    if (this.stories.size === 0) this.world.stories = { ...this.world.stories };
    this.stories.add(id);
    return (this.world.stories[id] = story ? { ...story } : emptyStory());
  }
}

function apply(batch: Batch, frame: RelayFrame, circumstance: Circumstance): void {
  if (isSessionEvent(frame)) {
    applyEvent(batch, frame, circumstance.followed, true);
    return;
  }
  switch (frame.type) {
    case "message_delta": {
      const id = frame.session_id;
      if (id && circumstance.followed.has(id)) {
        applyDelta(batch.story(id), frame, circumstance.now_ms);
      }
      return;
    }
    case "connection_ack":
      return applyAck(batch, frame);
    case "session_snapshot": {
      const named = new Set<string>();
      for (const session of frame.sessions) {
        const { session_id } = session;
        if (!session_id) continue;
        named.add(session_id);
        const before = batch.world.cards[session_id] ?? null;
        batch.putCard(session_id, cardFromSession({ ...session, session_id }, before));
      }
      // What the relay no longer names is closed or erased.
      for (const id of Object.keys(batch.world.cards)) if (!named.has(id)) batch.dropCard(id);
      batch.world.told = true;
      return;
    }
    case "history_delta": {
      if (!frame.session_id) return;
      const story = batch.story(frame.session_id);
      // Something before it is missing: it will be asked for from where we are.
      if (frame.from_sequence > story.cursor) return;
      for (const event of frame.events as SessionEvent[]) {
        if (event && EVENT_TYPES.has(event.type)) {
          const whole = { ...event, session_id: event.session_id ?? frame.session_id };
          applyEvent(batch, whole, circumstance.followed, false);
        }
      }
      if (frame.last_sequence > story.cursor) {
        story.cursor = frame.last_sequence;
      }
      if (frame.has_more !== true) story.complete = true;
      return;
    }
    case "history_snapshot": {
      // Comes only after a cursor that the relay does not know: begin anew.
      if (!frame.session_id) return;
      const story = batch.story(frame.session_id);
      Object.assign(story, emptyStory());
      for (const message of frame.messages) {
        const event = { type: "message_event", session_id: frame.session_id, sequence: 0, message };
        applyToStory(story, event as SessionEvent, batch.own);
      }
      story.cursor = frame.last_sequence;
      story.complete = frame.has_more !== true;
      return;
    }
    case "catalog":
      batch.world.catalog = { machines: frame.machines };
      return;
    case "connection_error":
    case "heartbeat_ack":
    case "session_launching":
    case "session_launch_ack":
    case "session_launch_failed":
    case "resumable_sessions":
    case "tool_output":
    case "agent_control_result":
      // Answers to one request; whoever asked hears them.
      return;
  }
}

function applyAck(batch: Batch, ack: Extract<RelayFrame, { type: "connection_ack" }>): void {
  // The ack tells every question that waits: what is not in it is settled.
  for (const id of Object.keys(batch.world.cards)) {
    const card = batch.card(id);
    if (card) card.prompts = [];
  }
  for (const prompt of ack.open_prompts ?? []) {
    const id = prompt.session_id;
    const card = batch.card(id) ?? cardFromSession(unknownSession(id), null);
    const asked_at = prompt.detected_at ?? null;
    batch.putCard(id, { ...card, prompts: [...card.prompts, { ...prompt, asked_at }] });
  }
  for (const [id, config] of Object.entries(ack.session_configs ?? {})) {
    const card = batch.card(id) ?? cardFromSession(unknownSession(id), null);
    batch.putCard(id, { ...card, config });
  }
}

/** Stands in until the snapshot, which follows at once, describes it. */
function unknownSession(session_id: string) {
  return { session_id, agent_type: "unknown", status: "disconnected" as const };
}

/**
 * One recorded event, for the list and, where every event of the session is told, for its story.
 * `live` is false for events of a history: those the card has seen already tell it nothing.
 */
function applyEvent(
  batch: Batch,
  event: SessionEvent,
  followed: ReadonlySet<string>,
  live: boolean,
): void {
  const id = event.type === "session_up" ? event.session.session_id : event.session_id;
  if (!id) return;
  const sequence = event.sequence ?? 0;
  let card = batch.card(id);
  if (!card && event.type === "session_up") {
    card = cardFromSession({ ...event.session, session_id: id }, null);
    card.sequence = 0;
    batch.putCard(id, card);
  }
  if (card && sequence > card.sequence) {
    applyToCard(card, event);
    card.sequence = sequence;
  }
  if (live && !followed.has(id)) return;
  // A send that was refused before it was recorded has no place; it concerns its sender alone.
  if (event.sequence === undefined) return;
  const story = batch.story(id);
  if (sequence > story.cursor) {
    applyToStory(story, event, batch.own);
    story.cursor = sequence;
  }
}
