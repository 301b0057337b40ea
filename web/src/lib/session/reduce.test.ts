import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { RelayFrame, Session } from "../wire/generated";
import { inOrder, standing, waiting } from "./card";
import { isSessionEvent, reduce, reduceAll } from "./reduce";
import { EMPTY_WORLD, type World } from "./state";

const FIXTURES = join(import.meta.dirname, "../../../../fixtures/native");
const SESSION = "sess_1";
const followed = new Set([SESSION]);
const circumstance = { followed, now_ms: 1_000 };

function session(more: Partial<Session> = {}): Session {
  return { session_id: SESSION, agent_type: "demo", status: "healthy", ...more };
}

const snapshot = (...sessions: Session[]) =>
  ({ type: "session_snapshot", sessions }) as unknown as RelayFrame;

/** An event of the session with its place. */
function event(sequence: number, type: string, more: object = {}): RelayFrame {
  const event_id = `evt_${SESSION}_${sequence}`;
  const server_ts = `2026-03-19T10:15:${String(sequence % 60).padStart(2, "0")}.000Z`;
  return { type, event_id, sequence, session_id: SESSION, server_ts, ...more } as RelayFrame;
}

const said = (sequence: number, id: string, content: string, role = "assistant") =>
  event(sequence, "message_event", {
    message: { message_id: id, role, content, created_at: "2026-03-19T10:15:30.000Z" },
  });
const accepted = (sequence: number, id: string, content: string) =>
  event(sequence, "message_accepted", {
    message_id: id,
    client_message_id: id,
    status: "accepted",
    accepted_at: "2026-03-19T10:15:30.000Z",
    content,
    sent_by: "ada",
  });
const history = (from: number, last: number, events: RelayFrame[], has_more = false) =>
  ({
    type: "history_delta",
    session_id: SESSION,
    from_sequence: from,
    last_sequence: last,
    events,
    has_more,
  }) as unknown as RelayFrame;
const delta = (id: string, offset: number, content: string, part = 0, kind = "text") =>
  ({
    type: "message_delta",
    session_id: SESSION,
    message_id: id,
    part,
    kind,
    offset,
    content,
  }) as RelayFrame;

function after(...frames: RelayFrame[]): World {
  return frames.reduce((world, frame) => reduce(world, frame, circumstance), EMPTY_WORLD);
}

const story = (world: World) => world.stories[SESSION]!;
const texts = (world: World) =>
  story(world).items.flatMap((item) => (item.kind === "message" ? [item.text] : []));

describe("the fixtures that Rust and the page share", () => {
  const files = readdirSync(FIXTURES);

  it("are there", () => expect(files.length).toBeGreaterThan(50));

  it.each(files.filter((file) => file.endsWith(".json")))(
    "%s changes nothing when told twice",
    (file) => {
      const frame = JSON.parse(readFileSync(join(FIXTURES, file), "utf8")) as RelayFrame;
      const seen = new Set([frame.session_id ?? ""]);
      const around = { followed: seen, now_ms: 0 };
      const start = reduce(
        EMPTY_WORLD,
        snapshot(session({ session_id: frame.session_id ?? "x" })),
        around,
      );
      const once = reduce(start, frame, around);
      expect(reduce(once, frame, around)).toEqual(once);
    },
  );

  const told = files.filter((file) => {
    const heard = file.endsWith(".jsonl") && heardIn(readFileSync(join(FIXTURES, file), "utf8"));
    return heard && heard.length > 0;
  });

  it.each(told)("%s is understood", (file) => {
    const frames = heardIn(readFileSync(join(FIXTURES, file), "utf8"));
    const whole = reduceAll(EMPTY_WORLD, frames, circumstance);
    const oneByOne = frames.reduce((world, it) => reduce(world, it, circumstance), EMPTY_WORLD);
    expect(oneByOne).toEqual(whole);
  });

  it("queue.jsonl leaves an empty queue and the new name", () => {
    const frames = heardIn(readFileSync(join(FIXTURES, "queue.jsonl"), "utf8"));
    const held = frames.findIndex((it) => it.type === "queue_update" && it.change === "held");
    const during = reduceAll(EMPTY_WORLD, frames.slice(0, held + 1), circumstance);
    expect(story(during).queue).toEqual({
      entries: [{ id: "m1", text: "other", mode: "follow_up" }],
      held: true,
    });
    const world = reduceAll(EMPTY_WORLD, frames, circumstance);
    expect(story(world).queue).toEqual({ entries: [], held: false });
    expect(world.cards[SESSION]?.session.title).toBe("Kite");
  });
});

/** The frames that the first client of a transcript hears, with what the patterns leave out. */
function heardIn(transcript: string): RelayFrame[] {
  let sequence = 1;
  const frames: RelayFrame[] = [];
  for (const line of transcript.split("\n").filter((it) => it.startsWith("< "))) {
    const raw = JSON.parse(line.slice(2)) as RelayFrame & Record<string, unknown>;
    const id = raw.session_id ?? SESSION;
    if (raw.type === "session_snapshot") {
      const sessions = (raw.sessions ?? [{}]).map((it) => session(it as Partial<Session>));
      frames.push({ ...raw, sessions });
      continue;
    }
    if (!isSessionEvent(raw)) {
      if (raw.type !== "history_delta" && raw.type !== "history_snapshot") frames.push(raw);
      continue;
    }
    sequence = typeof raw.sequence === "number" ? raw.sequence : sequence + 1;
    const fill = {
      message: { message_id: "x", role: "assistant", content: "" },
      session: session(),
      choices: [],
      prompt_text: "",
      client_message_id: "m1",
      entries: [],
      error: { code: "failed", message: "" },
    };
    frames.push({ ...fill, ...raw, session_id: id, sequence });
  }
  return frames;
}

describe("a story", () => {
  it("shows an event that comes live and in a history once", () => {
    const world = after(
      snapshot(session()),
      said(2, "a1", "one"),
      history(0, 3, [said(2, "a1", "one"), said(3, "a2", "two")]),
      said(3, "a2", "two"),
      said(4, "a3", "three"),
    );
    expect(texts(world)).toEqual(["one", "two", "three"]);
    expect(story(world).cursor).toBe(4);
  });

  it("does not take a history that begins after a gap", () => {
    const world = after(
      snapshot(session()),
      said(2, "a1", "one"),
      history(5, 6, [said(6, "a6", "six")]),
    );
    expect(texts(world)).toEqual(["one"]);
    expect(story(world).cursor).toBe(2);
  });

  it("is complete with the last page only", () => {
    const first = after(snapshot(session()), history(0, 1, [said(1, "a1", "one")], true));
    expect(story(first).complete).toBe(false);
    const last = reduce(first, history(1, 2, [said(2, "a2", "two")]), circumstance);
    expect(story(last).complete).toBe(true);
    expect(texts(last)).toEqual(["one", "two"]);
  });

  it("begins anew with a snapshot", () => {
    const messages = [{ message_id: "b1", role: "user", content: "fresh" }];
    const anew = { type: "history_snapshot", session_id: SESSION, last_sequence: 9, messages };
    const world = after(snapshot(session()), said(2, "a1", "old"), anew as unknown as RelayFrame);
    expect(texts(world)).toEqual(["fresh"]);
    expect(story(world).cursor).toBe(9);
  });

  it("takes nothing of a session that is not followed, but its card does", () => {
    const nobody = { followed: new Set<string>(), now_ms: 0 };
    const asked = event(5, "permission_prompt", { prompt_id: "p", prompt_text: "?", choices: [] });
    let world = reduce(EMPTY_WORLD, snapshot(session()), nobody);
    world = reduceAll(world, [said(4, "a1", "one"), asked], nobody);
    expect(world.stories[SESSION]).toBeUndefined();
    expect(standing(world.cards[SESSION]!)).toBe("waiting");
  });

  it("does not wake settled questions when an old history is read", () => {
    const asked = event(2, "permission_prompt", {
      prompt_id: "p",
      prompt_text: "Run it?",
      choices: [{ choice_id: "yes", label: "Yes", is_default: false, effect: "allow_once" }],
    });
    const answer = event(3, "permission_prompt_resolved", {
      prompt_id: "p",
      choice_id: "yes",
      answered_by: "ada",
    });
    const start = after(snapshot(session({ last_sequence: 3 })), history(0, 2, [asked], true));
    expect(waiting(start.cards)).toEqual([]);
    const end = reduce(start, history(2, 3, [answer]), circumstance);
    const told = { kind: "answer", prompt: "p", effect: "allowed", choice: "Yes", by: "ada" };
    expect(story(end).items).toMatchObject([told]);
  });

  it("says of a form that it was answered or not, and nothing of its button", () => {
    const asked = event(2, "permission_prompt", {
      prompt_id: "p",
      prompt_text: "Which?",
      questions: [{ question: "Which?" }],
      choices: [
        { choice_id: "answer", label: "Answer", is_default: false, effect: "allow_once" },
        { choice_id: "no", label: "Do not answer", is_default: false, effect: "reject" },
      ],
    });
    for (const [choice_id, effect] of [
      ["answer", "other"],
      ["no", "declined"],
    ]) {
      const answer = event(3, "permission_prompt_resolved", {
        prompt_id: "p",
        choice_id,
        answered_by: "ada",
      });
      const end = after(snapshot(session()), history(0, 3, [asked, answer]));
      expect(story(end).items).toMatchObject([{ kind: "answer", effect, choice: null }]);
    }
  });
});

describe("a send", () => {
  it("waits, is delivered, and becomes the person's message once", () => {
    const world = after(snapshot(session()), accepted(2, "m1", "hi"));
    expect(story(world).sends).toMatchObject([{ id: "m1", text: "hi" }]);
    const handed = event(3, "queue_update", { change: "removed", client_message_id: "m1" });
    const told = event(4, "message_delivered", {
      client_message_id: "m1",
      delivered_at: "2026-03-19T10:15:31.000Z",
    });
    const end = reduceAll(world, [handed, told, said(5, "m1", "hi", "user")], circumstance);
    expect(story(end).sends).toEqual([]);
    expect(story(end).queue.entries).toEqual([]);
    expect(story(end).items).toMatchObject([
      { kind: "message", role: "user", delivery: { at: "2026-03-19T10:15:31.000Z" } },
    ]);
  });

  it("that failed stays to be seen until it is tried again", () => {
    const error = { code: "send_rejected", message: "No." };
    const refused = event(3, "message_failed", { client_message_id: "m1", error });
    const world = after(snapshot(session()), accepted(2, "m1", "hi"), refused);
    expect(story(world).items).toMatchObject([{ kind: "failed", error }]);
    const again = reduce(world, accepted(4, "m1", "hi"), circumstance);
    expect(story(again).items).toEqual([]);
    expect(story(again).sends).toHaveLength(1);
  });

  it("that was taken out of the queue is no failure", () => {
    const error = { code: "discarded", message: "" };
    const world = after(
      snapshot(session()),
      accepted(2, "m1", "hi"),
      event(3, "message_failed", { client_message_id: "m1", error }),
    );
    expect(story(world).items).toEqual([]);
    expect(story(world).queue.entries).toEqual([]);
  });
});

describe("words as they come", () => {
  it("are joined by their offsets, whatever is told twice", () => {
    const world = after(
      snapshot(session()),
      delta("a1", 0, "Hello"),
      delta("a1", 5, " wor"),
      delta("a1", 5, " wor"),
      delta("a1", 0, "Hello wor"),
      delta("a1", 9, "ld"),
      delta("a1", 99, "lost"),
    );
    expect(story(world).drafts).toMatchObject([{ id: "a1", parts: [{ text: "Hello world" }] }]);
  });

  it("are replaced by the finished message and do not come back", () => {
    const world = after(
      snapshot(session()),
      delta("a1", 0, "Hel"),
      said(2, "a1", "Hello."),
      delta("a1", 3, "lo"),
    );
    expect(story(world).drafts).toEqual([]);
    expect(texts(world)).toEqual(["Hello."]);
  });

  it("tell how long it was thought", () => {
    let world = after(snapshot(session()));
    world = reduce(world, delta("a1", 0, "hm", 0, "thinking"), { followed, now_ms: 1_000 });
    world = reduce(world, delta("a1", 0, "Yes", 1), { followed, now_ms: 4_500 });
    world = reduce(world, said(2, "a1", "Yes"), circumstance);
    expect(story(world).items).toMatchObject([{ thought_ms: 3_500 }]);
  });

  it("leave the finished messages alone", () => {
    const before = after(snapshot(session()), said(2, "a1", "one"));
    const world = reduce(before, delta("a2", 0, "two"), circumstance);
    expect(story(world).items).toBe(story(before).items);
    expect(story(before).drafts).toEqual([]);
  });
});

describe("a run that its machine cut off", () => {
  it("lasted until then, not until its end was told", () => {
    const cut = { outcome: "interrupted", reason: "Farhelm stopped", lasted_ms: 4_000 };
    const world = after(
      snapshot(session()),
      event(2, "run_started", { run_id: "r" }),
      event(3, "run_ended", { run_id: "r", ...cut }),
    );
    const run = story(world).items.find((item) => item.kind === "run");
    expect(run).toMatchObject(cut);
  });
});

describe("the list", () => {
  it("has those that wait first, then failed, running and quiet ones", () => {
    const ids = ["quiet", "running", "failed", "waiting"];
    const all = snapshot(...ids.map((session_id) => session({ session_id })));
    const of = (id: string, type: string, more: object) =>
      ({ ...event(2, type, more), session_id: id }) as RelayFrame;
    const world = after(
      all,
      of("running", "run_started", { run_id: "r" }),
      of("failed", "run_ended", { run_id: "r", outcome: "failed" }),
      of("waiting", "permission_prompt", { prompt_id: "p", prompt_text: "?", choices: [] }),
    );
    const order = inOrder(world.cards).map((card) => card.session.session_id);
    expect(order).toEqual(["waiting", "failed", "running", "quiet"]);
  });

  it("forgets what a later snapshot does not name, and prompts that an ack does not", () => {
    const ack = { type: "connection_ack", open_prompts: [] } as unknown as RelayFrame;
    const asked = event(2, "permission_prompt", { prompt_id: "p", prompt_text: "?", choices: [] });
    const world = after(snapshot(session(), session({ session_id: "sess_2" })), asked);
    expect(waiting(world.cards)).toHaveLength(1);
    const later = reduceAll(world, [ack, snapshot(session({ last_sequence: 3 }))], circumstance);
    expect(waiting(later.cards)).toEqual([]);
    expect(Object.keys(later.cards)).toEqual([SESSION]);
  });
});

describe("a long session", () => {
  it("of ten thousand messages is read page by page without copying it each time", () => {
    const pages: RelayFrame[] = [];
    for (let page = 0; page < 20; page += 1) {
      const from = page * 500;
      const events = Array.from({ length: 500 }, (_, i) => said(from + i + 1, `a${from + i}`, "x"));
      pages.push(history(from, from + 500, events, page < 19));
    }
    const began = performance.now();
    const world = after(snapshot(session()), ...pages);
    expect(story(world).items).toHaveLength(10_000);
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});
