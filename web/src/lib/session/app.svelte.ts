// The page's one state: who is in, whether there is a connection, and the parts that do the work.
//
// Components render what is here and call what is here; nothing else talks to the relay.
// Not here: what is known and followed (reading.svelte.ts), what a person does to sessions
// (steering.svelte.ts), sockets (connection/).
import { Connection, type Link } from "../connection/connection";
import { api, Failed, type Me } from "../connection/http";
import { Shelf } from "../connection/shelf";
import { t } from "../text/en";
import type { RelayFrame } from "../wire/generated";
import { Launches } from "./launches.svelte";
import { Reading } from "./reading.svelte";
import { Steering } from "./steering.svelte";

/** A relay that does not say by then who we are is treated as one that cannot be reached. */
const ME_WITHIN_MS = 1_500;
const QUIET_CODES: ReadonlySet<string> = new Set(["resume_cursor_invalid", "session_unknown"]);
const CLIENT_ID_KEY = "farhelm.client_id";

export type Entry = "checking" | "needed" | "inside";

export class App {
  link = $state.raw<Link>({ state: "stopped" });
  me = $state.raw<Me | null>(null);
  entry = $state.raw<Entry>("checking");
  /** Why the way in is needed again. */
  entryWords = $state.raw<string | null>(null);
  /** How far the relay's clock is ahead of this device's. */
  skew_ms = $state.raw(0);
  /** One sentence about something that did not work; it goes by itself or by a tap. */
  complaint = $state.raw<string | null>(null);

  readonly shelf = new Shelf();
  readonly reading = new Reading(() => this.connection, this.shelf);
  readonly connection: Connection;
  readonly launches: Launches;
  readonly steering: Steering;

  constructor() {
    this.connection = new Connection(
      {
        open: () => new WebSocket(`${location.origin.replace(/^http/, "ws")}/ws/native`),
        now: () => Date.now(),
        random: () => Math.random(),
        probe: () => this.probe(),
        clientId: clientId(),
        version: __VERSION__,
      },
      {
        linked: (link) => this.linked(link),
        heard: (frame) => this.heard(frame),
        greeted: () => this.greeted(),
        cursors: () => this.reading.cursors(),
      },
    );
    this.launches = new Launches(this.connection);
    this.steering = new Steering(this.connection, this.shelf, {
      complain: (words) => this.complain(words),
      forget: (session) => this.reading.forget(session),
    });
  }

  get world() {
    return this.reading.world;
  }

  get current() {
    return this.reading.current;
  }

  get past() {
    return this.reading.past;
  }

  get maySteer(): boolean {
    return this.me === null || this.me.role === "operator" || this.me.role === "owner";
  }

  get isOpen(): boolean {
    return this.link.state === "open" && this.world.told;
  }

  /** Paints what is remembered, then finds out whether this device is known. */
  async start(): Promise<void> {
    await this.reading.remember();
    await this.steering.outbox.open();
    const late = setTimeout(() => this.enter(), ME_WITHIN_MS);
    try {
      this.me = await api.me();
      if (this.entry !== "inside") this.enter();
    } catch (error) {
      if (error instanceof Failed && error.status === 401) {
        this.connection.stop();
        this.entry = "needed";
      } else if (this.entry !== "inside") this.enter();
    } finally {
      clearTimeout(late);
    }
    addEventListener("online", () => this.connection.nudge());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.connection.nudge();
      else void this.reading.keep("now");
    });
    addEventListener("pagehide", () => void this.reading.keep("now"));
  }

  /** The device has a credential (or nobody can say that it has none). */
  enter(): void {
    this.entry = "inside";
    this.entryWords = null;
    this.connection.start();
    if (!this.me)
      void api.me().then(
        (me) => (this.me = me),
        () => undefined,
      );
  }

  /** This browser forgets its token and everything it remembers. */
  async leave(): Promise<void> {
    await api.leave().catch(() => undefined);
    this.connection.stop();
    await this.shelf.clear();
    this.reading.forgetAll();
    this.me = null;
    this.entry = "needed";
  }

  complain(words: string): void {
    this.complaint = words;
  }

  complainOf(error: unknown): void {
    this.complain(error instanceof Error ? error.message : String(error));
  }

  private async probe(): Promise<"welcome" | "unauthorized" | "unreachable"> {
    try {
      this.me = await api.me();
      return "welcome";
    } catch (error) {
      const unknown = error instanceof Failed && error.status === 401;
      return unknown ? "unauthorized" : "unreachable";
    }
  }

  private linked(link: Link): void {
    this.link = link;
    if (link.state !== "refused") return;
    this.entry = "needed";
    this.entryWords = t.trouble.signedOut;
    void this.probe();
  }

  private greeted(): void {
    this.reading.greeted();
    this.steering.outbox.sendAll();
  }

  private heard(frame: RelayFrame): void {
    this.steering.outbox.heard(frame);
    this.launches.heard(frame);
    if (frame.type === "heartbeat_ack" && frame.server_ts) {
      this.skew_ms = Date.parse(frame.server_ts) - Date.now();
    }
    if (frame.type === "connection_error" && !frame.client_message_id && !frame.request_id) {
      // The view itself says that a session is not there.
      if (!QUIET_CODES.has(frame.code)) this.complain(frame.message);
    }
    this.reading.heard(frame);
  }
}

/** An id that this browser invents once and keeps. */
function clientId(): string {
  try {
    const kept = localStorage.getItem(CLIENT_ID_KEY);
    if (kept) return kept;
    const bytes = crypto.getRandomValues(new Uint8Array(12));
    const fresh = `page_${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    localStorage.setItem(CLIENT_ID_KEY, fresh);
    return fresh;
  } catch {
    return `page_${Math.random().toString(36).slice(2)}`;
  }
}
