import "fake-indexeddb/auto";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RelayFrame } from "../wire/generated";
import { LONGEST_WAIT_MS, waitMs } from "./backoff";
import { Connection, type Link, type Refused, type Socket } from "./connection";
import { Outbox, type Outgoing } from "./outbox";
import { Shelf, STORIES_KEPT_MAX } from "./shelf";

type Said = Record<string, unknown> & { type: string };

/** A socket whose other end is the test. */
class Wire implements Socket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  said: Said[] = [];
  isClosed = false;

  send(text: string): void {
    this.said.push(JSON.parse(text) as Said);
  }
  close(): void {
    this.isClosed = true;
  }
  tell(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  greet(more: object = {}): void {
    this.onopen?.();
    this.tell({
      type: "connection_ack",
      connection_id: "c",
      heartbeat_interval_ms: 10_000,
      heartbeat_timeout_ms: 30_000,
      ...more,
    });
    this.tell({ type: "session_snapshot", sessions: [] });
  }
  of(type: string): Said[] {
    return this.said.filter((it) => it.type === type);
  }
}

class Stage {
  wires: Wire[] = [];
  links: Link[] = [];
  heard: RelayFrame[] = [];
  cursor = 0;
  found: "welcome" | "unauthorized" | "unreachable" = "unreachable";
  onGreeted = () => {};
  readonly connection = new Connection(
    {
      open: () => {
        const wire = new Wire();
        this.wires.push(wire);
        return wire;
      },
      now: () => Date.now(),
      random: () => 1,
      probe: () => Promise.resolve(this.found),
      clientId: "page_1",
      version: "1",
    },
    {
      linked: (link) => this.links.push(link),
      heard: (frame) => this.heard.push(frame),
      greeted: () => this.onGreeted(),
      cursors: () =>
        this.cursor > 0 ? [{ session_id: "sess_1", last_sequence: this.cursor }] : [],
    },
  );

  get wire(): Wire {
    return this.wires.at(-1)!;
  }
  get link(): Link {
    return this.links.at(-1)!;
  }
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
});
afterEach(() => vi.useRealTimers());

describe("waiting before the next try", () => {
  it("doubles from one second to thirty, between half and all of it", () => {
    expect([0, 1, 2, 3].map((attempt) => waitMs(attempt, () => 1))).toEqual([
      1_000, 2_000, 4_000, 8_000,
    ]);
    expect(waitMs(0, () => 0)).toBe(500);
    expect(waitMs(1_000, () => 1)).toBe(LONGEST_WAIT_MS);
  });
});

describe("a connection", () => {
  it("says who it is and what it can use, and resumes from its cursor", () => {
    const stage = new Stage();
    stage.connection.start();
    stage.wire.greet();
    expect(stage.wire.of("connection_hello")[0]).toMatchObject({
      protocol_version: 1,
      peer_role: "browser",
      client_id: "page_1",
      resume: { sessions: [] },
    });
    expect(stage.wire.of("connection_hello")[0]?.features).toContain("deltas");
    stage.cursor = 42;
    stage.wire.onclose?.({ code: 1006 });
    vi.advanceTimersByTime(1_000);
    stage.wire.greet();
    expect(stage.wire.of("connection_hello")[0]?.resume).toEqual({
      sessions: [{ session_id: "sess_1", last_sequence: 42 }],
    });
    expect(stage.connection.figures).toMatchObject({ sockets: 2, dropped: 1, resumed: 1 });
  });

  it("tells since when it is gone, over several tries", () => {
    const stage = new Stage();
    stage.connection.start();
    stage.wire.greet();
    const gone = Date.now();
    stage.wire.onclose?.({ code: 1001 });
    vi.advanceTimersByTime(1_000);
    expect(stage.link).toMatchObject({ state: "connecting", since_ms: gone });
    stage.wire.onopen?.();
    stage.wire.onclose?.({ code: 1006 });
    expect(stage.link).toMatchObject({
      state: "waiting",
      since_ms: gone,
      retry_at_ms: Date.now() + 2_000,
    });
  });

  it("beats, measures, and gives a silent socket up", () => {
    const stage = new Stage();
    stage.connection.start();
    stage.wire.greet();
    const first = stage.wire.of("heartbeat")[0];
    vi.advanceTimersByTime(80);
    stage.wire.tell({ type: "heartbeat_ack", request_id: first?.request_id });
    expect(stage.connection.figures.latency_ms).toBe(80);
    vi.advanceTimersByTime(20_000);
    expect(stage.wire.of("heartbeat")).toHaveLength(3);
    expect(stage.link.state).toBe("open");
    const silent = stage.wire;
    vi.advanceTimersByTime(10_001);
    expect(silent.isClosed).toBe(true);
    expect(stage.link.state).toBe("waiting");
  });

  it("tries at once when the device wakes up, and soon notices a socket that died in its sleep", () => {
    const stage = new Stage();
    stage.connection.start();
    stage.wire.greet();
    stage.connection.nudge();
    vi.advanceTimersByTime(4_001);
    expect(stage.link.state).toBe("waiting");
    stage.connection.nudge();
    expect(stage.wires).toHaveLength(2);
    expect(stage.link.state).toBe("connecting");
  });

  it("stops trying when the credential opens nothing any more", async () => {
    const stage = new Stage();
    stage.connection.start();
    stage.found = "unauthorized";
    stage.wire.onclose?.({ code: 1006 });
    await vi.waitFor(() => expect(stage.link.state).toBe("refused"));
    vi.advanceTimersByTime(120_000);
    expect(stage.wires).toHaveLength(1);
  });

  it("is refused when the relay says that it was revoked", () => {
    const stage = new Stage();
    stage.connection.start();
    stage.wire.greet();
    stage.wire.onclose?.({ code: 4003 });
    expect(stage.link.state).toBe("refused");
  });

  it("ignores what an old socket still says", () => {
    const stage = new Stage();
    stage.connection.start();
    stage.wire.greet();
    const old = stage.wire;
    const hears = old.onmessage;
    old.onclose?.({ code: 1006 });
    const before = stage.heard.length;
    hears?.({ data: JSON.stringify({ type: "session_snapshot", sessions: [] }) });
    expect(stage.heard).toHaveLength(before);
  });
});

describe("a request", () => {
  it("is answered by its id, refused in words, and given up when the socket goes", async () => {
    const stage = new Stage();
    stage.connection.start();
    stage.wire.greet();
    const stop = stage.connection.ask("agent_interrupt", { session_id: "sess_1" });
    const stopped = stage.wire.of("agent_interrupt")[0];
    stage.wire.tell({
      type: "agent_control_result",
      request_id: stopped?.request_id,
      result: "ok",
    });
    await expect(stop).resolves.toMatchObject({ type: "agent_control_result" });

    const again = stage.connection.ask("agent_interrupt", { session_id: "sess_1" });
    const error = { code: "agent_not_active", message: "Nothing is running" };
    const { request_id } = stage.wire.of("agent_interrupt")[1]!;
    stage.wire.tell({ type: "agent_control_result", request_id, result: "failed", error });
    await expect(again).rejects.toMatchObject({ code: "agent_not_active" } as Partial<Refused>);

    const cut = stage.connection.ask("agent_interrupt", { session_id: "sess_1" });
    stage.wire.onclose?.({ code: 1006 });
    await expect(cut).rejects.toMatchObject({ code: "offline" });
    const none = stage.connection.ask("agent_interrupt", { session_id: "sess_1" });
    await expect(none).rejects.toMatchObject({ code: "offline" });
  });
});

describe("words that were written while nobody could hear", () => {
  let name = 0;
  function withOutbox() {
    const stage = new Stage();
    const shelf = new Shelf(`test-${(name += 1)}`);
    let waiting: Outgoing[] = [];
    const outbox = new Outbox(
      shelf,
      () => stage.connection,
      (now) => (waiting = now),
    );
    stage.onGreeted = () => outbox.sendAll();
    return { stage, shelf, outbox, waiting: () => waiting };
  }
  const words = (id: string, text: string) => ({
    id,
    session_id: "sess_1",
    text,
    attachments: [],
    mode: null,
    created_at: `2026-03-19T10:15:3${id.slice(1)}.000Z`,
  });
  const accepted = (id: string) =>
    ({ type: "message_accepted", sequence: 5, client_message_id: id }) as unknown as RelayFrame;

  beforeEach(() => vi.useRealTimers());

  it("are kept, sent when the connection is back, and sent once under their id", async () => {
    const { stage, shelf, outbox, waiting } = withOutbox();
    await outbox.send(words("m1", "first"));
    await outbox.send(words("m2", "second"));
    expect(await shelf.unsent()).toHaveLength(2);
    stage.connection.start();
    stage.wire.greet();
    const sent = () => stage.wire.of("send_message").map((it) => it.client_message_id);
    expect(sent()).toEqual(["m1", "m2"]);
    outbox.heard(accepted("m1"));
    expect(waiting().map((it) => it.id)).toEqual(["m2"]);
    // The socket goes before the second was told as accepted: it is said again, the first is not.
    stage.wire.onclose?.({ code: 1006 });
    stage.connection.nudge();
    stage.wire.greet();
    expect(sent()).toEqual(["m2"]);
    outbox.heard(accepted("m2"));
    await vi.waitFor(async () => expect(await shelf.unsent()).toEqual([]));
    stage.connection.stop();
  });

  it("survive a page that was closed", async () => {
    const { shelf, outbox } = withOutbox();
    await outbox.send(words("m1", "first"));
    const later = new Stage();
    let waiting: Outgoing[] = [];
    const next = new Outbox(
      shelf,
      () => later.connection,
      (now) => (waiting = now),
    );
    await next.open();
    expect(waiting).toMatchObject([{ id: "m1", text: "first" }]);
    later.onGreeted = () => next.sendAll();
    later.connection.start();
    later.wire.greet();
    expect(later.wire.of("send_message")).toMatchObject([
      { client_message_id: "m1", content: "first" },
    ]);
    later.connection.stop();
  });

  it("are confirmed by a history that tells them", async () => {
    const { outbox, waiting } = withOutbox();
    await outbox.send(words("m1", "first"));
    outbox.heard({ type: "history_delta", events: [accepted("m1")] } as unknown as RelayFrame);
    expect(waiting()).toEqual([]);
  });

  it("that the relay refuses wait for the person and are not sent by themselves", async () => {
    const { stage, outbox, waiting } = withOutbox();
    stage.connection.start();
    stage.wire.greet();
    await outbox.send(words("m1", "first"));
    const error = { code: "message_too_large", message: "Too long" };
    outbox.heard({
      type: "message_failed",
      client_message_id: "m1",
      error,
    } as unknown as RelayFrame);
    expect(waiting()).toMatchObject([{ refused: error }]);
    outbox.sendAll();
    expect(stage.wire.of("send_message")).toHaveLength(1);
    outbox.retry("m1");
    expect(stage.wire.of("send_message")).toHaveLength(2);
    stage.connection.stop();
  });
});

describe("the shelf", () => {
  it("remembers stories without what is in the making", async () => {
    vi.useRealTimers();
    const shelf = new Shelf("test-stories");
    const { emptyStory } = await import("../session/state");
    const draft = { id: "a", parts: [], began_ms: 0, spoke_ms: null };
    const story = { ...emptyStory(), cursor: 7, complete: true, drafts: [draft] };
    await shelf.keepStory("sess_1", story, 1);
    expect(await shelf.story("sess_1")).toEqual({ ...story, complete: false, drafts: [] });
    for (let at = 2; at <= STORIES_KEPT_MAX + 1; at += 1)
      await shelf.keepStory(`sess_${at}`, story, at);
    expect(await shelf.story("sess_1")).toBeNull();
    expect(await shelf.story("sess_2")).not.toBeNull();
    await shelf.clear();
    expect(await shelf.story("sess_2")).toBeNull();
  });
});
