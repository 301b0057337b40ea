// The words of a session, after an event.
//
// Invariant: a message or tool call has one place; a repeat finds it there.
// Not here: whether an event is new (reduce.ts).
import type { RelayFrame } from "../wire/generated";
import type { SessionEvent } from "./reduce";
import type { AnswerItem, Draft, Item, MessageItem, Send, Story, ToolItem, Waiting } from "./state";

/** Drafts at once; subagents may speak beside the agent. More are shown when they are finished. */
const DRAFTS_MAX = 32;

type EventOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;

/**
 * Changes the story, which is the caller's own copy. `own` names the lists that were copied for
 * this batch already: a history of thousands of events must not copy them for each.
 */
export function applyToStory(story: Story, event: SessionEvent, own: WeakSet<object>): void {
  switch (event.type) {
    case "message_event":
      return message(story, event, own);
    case "message_accepted":
      return accepted(story, event);
    case "message_delivered":
      return delivered(story, event, own);
    case "message_failed":
      return failed(story, event, own);
    case "tool_call":
      return toolCall(story, event, own);
    case "tool_update":
      return toolUpdate(story, event, own);
    case "run_started":
      story.run_began = { id: event.run_id, at: event.server_ts ?? null };
      return;
    case "run_ended":
      append(story, own, {
        kind: "run",
        key: key(event),
        outcome: event.outcome,
        reason: event.reason ?? null,
        usage: event.usage ?? null,
        began_at: story.run_began?.id === event.run_id ? story.run_began.at : null,
        ended_at: event.server_ts ?? null,
        lasted_ms: event.lasted_ms ?? null,
      });
      // What was in the making and never finished is not going to be.
      story.drafts = [];
      story.run_began = null;
      return;
    case "queue_update":
      return queue(story, event, own);
    case "permission_prompt": {
      const session_id = event.session_id ?? "";
      const waiting: Waiting = { ...event, session_id, asked_at: event.server_ts ?? null };
      story.asked = new Map(story.asked).set(event.prompt_id, waiting);
      return;
    }
    case "permission_prompt_resolved":
      return settled(story, event, own, event.choice_id ?? null, event.answered_by);
    case "permission_prompt_expired":
      return settled(story, event, own, event.applied_choice ?? null, null);
    case "plan":
      story.plan = event.entries;
      // No plan any more: also not the one that an older page may bring.
      if (event.entries.length === 0) orphan(story, event, own);
      return;
    case "context_usage":
      story.context = { used: event.used_tokens, window: event.window_tokens };
      return;
    case "notice":
      append(story, own, {
        kind: "notice",
        key: key(event),
        word: event.kind,
        text: event.text,
        at: event.server_ts ?? null,
      });
      return;
    case "session_closed":
      append(story, own, {
        kind: "notice",
        key: key(event),
        word: "closed",
        text: event.reason ?? "",
        at: event.server_ts ?? null,
      });
      story.drafts = [];
      return;
    case "session_up":
    case "session_down":
    case "session_status":
    case "session_renamed":
    case "session_archived":
    case "agent_config":
      return;
  }
}

function key(event: SessionEvent): string {
  return `e${event.sequence ?? 0}`;
}

/** Keeps what cannot be understood before older pages are loaded. */
function orphan(story: Story, event: SessionEvent, own: WeakSet<object>): void {
  if (story.start === 0) return;
  if (!own.has(story.orphans)) {
    story.orphans = story.orphans.slice();
    own.add(story.orphans);
  }
  story.orphans.push({ event, place: story.items.length });
}

function append(story: Story, own: WeakSet<object>, item: Item, id?: string): void {
  const items = ownItems(story, own);
  items.push(item);
  if (id === undefined) return;
  if (!own.has(story.places)) {
    story.places = new Map(story.places);
    own.add(story.places);
  }
  story.places.set(id, items.length - 1);
}

function replace(story: Story, own: WeakSet<object>, at: number, item: Item): void {
  ownItems(story, own)[at] = item;
}

function ownItems(story: Story, own: WeakSet<object>): Item[] {
  if (!own.has(story.items)) {
    story.items = story.items.slice();
    own.add(story.items);
  }
  return story.items;
}

function message(story: Story, event: EventOf<"message_event">, own: WeakSet<object>): void {
  const { message } = event;
  const id = message.message_id ?? key(event);
  const send = story.sends.find((it) => it.id === id);
  const draft = story.drafts.find((it) => it.id === id);
  const item: MessageItem = {
    kind: "message",
    key: `m${id}`,
    id,
    role: message.role,
    text: message.content,
    parts: message.parts ?? null,
    at: message.created_at ?? event.server_ts ?? null,
    parent: message.parent_tool_call_id ?? null,
    sealed: message.sealed !== undefined,
    delivery: send?.delivered_at ? { at: send.delivered_at, by: send.by } : null,
    thought_ms: draft ? thoughtFor(draft) : null,
  };
  if (send) story.sends = story.sends.filter((it) => it !== send);
  if (draft) story.drafts = story.drafts.filter((it) => it !== draft);
  drop(story, id);
  const place = story.places.get(`m:${id}`);
  if (place === undefined) append(story, own, item, `m:${id}`);
  else replace(story, own, place, item);
}

function thoughtFor(draft: Draft): number | null {
  const thinks = draft.parts.some((part) => part.kind === "thinking");
  return thinks && draft.spoke_ms !== null ? draft.spoke_ms - draft.began_ms : null;
}

function accepted(story: Story, event: EventOf<"message_accepted">): void {
  const id = event.client_message_id;
  const send: Send = {
    id,
    text: event.content ?? "",
    attachments: event.attachments ?? [],
    mode: event.mode ?? null,
    by: event.sent_by ?? null,
    accepted_at: event.accepted_at,
    delivered_at: null,
  };
  story.sends = [...story.sends.filter((it) => it.id !== id), send];
  const entries = story.queue.entries.filter((it) => it.id !== id);
  entries.push({ id, text: send.text, mode: send.mode });
  story.queue = { ...story.queue, entries };
  // A second attempt takes the place of the failed one.
  const failedAt = story.items.findIndex((it) => it.kind === "failed" && it.send.id === id);
  if (failedAt >= 0) remove(story, failedAt);
}

function remove(story: Story, at: number): void {
  story.items = story.items.filter((_, index) => index !== at);
  const places = new Map<string, number>();
  for (const [id, place] of story.places) {
    if (place !== at) places.set(id, place > at ? place - 1 : place);
  }
  story.places = places;
}

function delivered(story: Story, event: EventOf<"message_delivered">, own: WeakSet<object>): void {
  const id = event.client_message_id;
  drop(story, id);
  const place = story.places.get(`m:${id}`);
  const item = place === undefined ? undefined : story.items[place];
  if (place !== undefined && item?.kind === "message") {
    replace(story, own, place, { ...item, delivery: { at: event.delivered_at, by: null } });
    return;
  }
  if (!story.sends.some((send) => send.id === id)) return orphan(story, event, own);
  story.sends = story.sends.map((send) =>
    send.id === id ? { ...send, delivered_at: event.delivered_at } : send,
  );
}

function failed(story: Story, event: EventOf<"message_failed">, own: WeakSet<object>): void {
  const id = event.client_message_id;
  drop(story, id);
  const send = story.sends.find((it) => it.id === id);
  story.sends = story.sends.filter((it) => it.id !== id);
  if (!send) return orphan(story, event, own);
  // A person took it out of the queue: that is what they wanted, not a failure.
  if (event.error.code === "discarded") return;
  append(story, own, {
    kind: "failed",
    key: key(event),
    send,
    error: event.error,
    at: event.failed_at,
  });
}

/** It no longer waits in the queue. */
function drop(story: Story, id: string): void {
  if (!story.queue.entries.some((it) => it.id === id)) return;
  const entries = story.queue.entries.filter((it) => it.id !== id);
  story.queue = { ...story.queue, entries };
}

function queue(story: Story, event: EventOf<"queue_update">, own: WeakSet<object>): void {
  const id = event.client_message_id;
  // Whatever an older page says of the queue, this came after it.
  const isKnown = story.queue.entries.some((it) => it.id === id);
  if (!isKnown) orphan(story, event, own);
  const entries = story.queue.entries.slice();
  const at = entries.findIndex((it) => it.id === id);
  const entry = entries[at];
  switch (event.change) {
    case "removed":
      if (entry) entries.splice(at, 1);
      break;
    case "edited":
      if (entry) entries[at] = { ...entry, text: event.content ?? "" };
      story.sends = story.sends.map((send) =>
        send.id === id ? { ...send, text: event.content ?? "" } : send,
      );
      break;
    case "moved":
      if (entry) {
        entries.splice(at, 1);
        entries.splice(event.position ?? 0, 0, entry);
      }
      break;
    case "held":
      story.queue = { entries, held: true };
      return;
    case "resumed":
      story.queue = { entries, held: false };
      return;
  }
  story.queue = { ...story.queue, entries };
}

function toolCall(story: Story, event: EventOf<"tool_call">, own: WeakSet<object>): void {
  const id = event.tool_call_id;
  const item: ToolItem = {
    kind: "tool",
    key: `t${id}`,
    id,
    tool: event.tool,
    tool_kind: event.kind,
    status: event.status,
    title: event.title ?? null,
    input: event.input,
    output: event.output ?? null,
    output_bytes: event.output_bytes ?? null,
    diffs: event.diffs ?? [],
    locations: event.locations ?? [],
    parent: event.parent_tool_call_id ?? null,
    began_at: event.server_ts ?? null,
    ended_at: isOver(event.status) ? (event.server_ts ?? null) : null,
  };
  const place = story.places.get(`t:${id}`);
  if (place === undefined) append(story, own, item, `t:${id}`);
  else replace(story, own, place, item);
}

function toolUpdate(story: Story, event: EventOf<"tool_update">, own: WeakSet<object>): void {
  const place = story.places.get(`t:${event.tool_call_id}`);
  const before = place === undefined ? undefined : story.items[place];
  if (place === undefined || before?.kind !== "tool") return orphan(story, event, own);
  replace(story, own, place, {
    ...before,
    status: event.status,
    title: event.title ?? before.title,
    input: event.input ?? before.input,
    output: event.output ?? before.output,
    output_bytes: event.output === undefined ? before.output_bytes : (event.output_bytes ?? null),
    diffs: event.diffs ?? before.diffs,
    locations: event.locations ?? before.locations,
    ended_at: isOver(event.status) ? (event.server_ts ?? null) : null,
  });
}

function isOver(status: ToolItem["status"]): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

function settled(
  story: Story,
  event: EventOf<"permission_prompt_resolved" | "permission_prompt_expired">,
  own: WeakSet<object>,
  choice_id: string | null,
  by: string | null,
): void {
  const asked = story.asked.get(event.prompt_id);
  if (!asked) return orphan(story, event, own);
  story.asked = new Map(story.asked);
  story.asked.delete(event.prompt_id);
  const choice = asked.choices.find((it) => it.choice_id === choice_id);
  const item: AnswerItem = {
    kind: "answer",
    key: key(event),
    prompt: event.prompt_id,
    question: asked.prompt_text,
    command: commandOf(asked.input),
    // The button that sent a form says nothing.
    choice: asked.questions === undefined ? (choice?.label ?? null) : null,
    effect: effectOf(
      event.type,
      choice?.effect,
      choice !== undefined,
      asked.questions !== undefined,
    ),
    by,
    at: event.server_ts ?? null,
  };
  append(story, own, item);
}

function effectOf(
  type: SessionEvent["type"],
  effect: "allow_once" | "allow_always" | "reject" | undefined,
  chosen: boolean,
  isForm: boolean,
): AnswerItem["effect"] {
  if (type === "permission_prompt_expired") return chosen ? "expired" : "withdrawn";
  if (isForm) return effect === "reject" ? "declined" : "other";
  if (effect === undefined) return "other";
  return effect === "reject" ? "denied" : "allowed";
}

/** The command line in a tool's input, where there is one. */
export function commandOf(input: unknown): string | null {
  if (typeof input !== "object" || input === null) return null;
  const { command, cmd } = input as { command?: unknown; cmd?: unknown };
  const found = command ?? cmd;
  if (typeof found === "string") return found;
  if (Array.isArray(found) && found.every((word) => typeof word === "string")) {
    return found.join(" ");
  }
  return null;
}

/** Words as they come. A stretch that was told before, or that does not fit, changes nothing. */
export function applyDelta(
  story: Story,
  delta: Extract<RelayFrame, { type: "message_delta" }>,
  now_ms: number,
): void {
  const words = delta.content ?? "";
  // It follows an event that has not come: the finished message will tell all of it.
  if (story.places.has(`m:${delta.message_id}`)) return;
  const index = story.drafts.findIndex((it) => it.id === delta.message_id);
  if (index < 0 && story.drafts.length >= DRAFTS_MAX) return;
  const before: Draft = story.drafts[index] ?? {
    id: delta.message_id,
    parts: [],
    began_ms: now_ms,
    spoke_ms: null,
  };
  const part = before.parts[delta.part] ?? { kind: delta.kind, text: "" };
  if (delta.part > before.parts.length || delta.offset > part.text.length) return;
  const text = part.text.slice(0, delta.offset) + words;
  // A repeat of a stretch that reaches less far than what is there.
  if (text.length <= part.text.length) return;
  const parts = before.parts.slice();
  parts[delta.part] = { kind: delta.kind, text };
  const spoke_ms = before.spoke_ms ?? (delta.kind === "text" ? now_ms : null);
  const draft = { ...before, parts, spoke_ms };
  story.drafts = index < 0 ? [...story.drafts, draft] : story.drafts.with(index, draft);
}
