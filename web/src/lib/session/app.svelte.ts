// The page's one state and everything a person can do to it.
//
// Components render what is here and call what is here; nothing else talks to the relay.
// Not here: how frames change what is known (reduce.ts), sockets (connection/).
import { Connection, Refused, type Link } from "../connection/connection";
import { api, Failed, type Me } from "../connection/http";
import { Outbox, type Outgoing } from "../connection/outbox";
import { Shelf } from "../connection/shelf";
import type { Attachment, ModeWord, PermissionResponse, RelayFrame } from "../wire/generated";
import { t } from "../text/en";
import { Launches } from "./launches.svelte";
import { Past, PAGE_EVENTS } from "./past.svelte";
import { reduceAll } from "./reduce";
import { EMPTY_WORLD, emptyStory, type World } from "./state";

/** Stories in memory; the longest unseen one is let go and read from the shelf again. */
const STORIES_OPEN_MAX = 8;
/** A remembered story that is so many events behind is read from its end again. */
const BEHIND_MAX = 2_000;
/** The list is kept at most this often, a story (which may be long) less often and when one leaves. */
const KEEP_EVERY_MS = 2_000;
const KEEP_STORY_EVERY_MS = 20_000;
/** A relay that does not say by then who we are is treated as one that cannot be reached. */
const ME_WITHIN_MS = 1_500;
/** Frames are shown together, at most once per picture; where no picture is drawn, after this. */
const HIDDEN_FLUSH_MS = 100;
const QUIET_CODES: ReadonlySet<string> = new Set(["resume_cursor_invalid", "session_unknown"]);
const CLIENT_ID_KEY = "farhelm.client_id";

export type Entry = "checking" | "needed" | "inside";

export class App {
  world = $state.raw<World>(EMPTY_WORLD);
  link = $state.raw<Link>({ state: "stopped" });
  unsent = $state.raw<Outgoing[]>([]);
  me = $state.raw<Me | null>(null);
  entry = $state.raw<Entry>("checking");
  /** Why the way in is needed again. */
  entryWords = $state.raw<string | null>(null);
  current = $state.raw<string | null>(null);
  /** The session that is looked at, or was last. */
  latest = $state.raw<string | null>(null);
  /** Sessions whose run a person asked to stop, until it is confirmed. */
  stopping = $state.raw<ReadonlySet<string>>(new Set());
  /** Prompts whose answer is on its way. */
  answering = $state.raw<ReadonlySet<string>>(new Set());
  /** How far the relay's clock is ahead of this device's. */
  skew_ms = $state.raw(0);
  /** One sentence about something that did not work; it goes by itself or by a tap. */
  complaint = $state.raw<string | null>(null);

  readonly shelf = new Shelf();
  readonly connection: Connection;
  readonly launches: Launches;
  readonly past: Past;
  private readonly outbox: Outbox;
  /** The session of which every event is told: from the first page of its history on. */
  private followed: ReadonlySet<string> = new Set();
  private resumed: string | null = null;
  private waiting: RelayFrame[] = [];
  private scheduled = false;
  private keeping: ReturnType<typeof setTimeout> | undefined;
  private seen: string[] = [];
  private story_kept_ms = 0;

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
        cursors: () => this.cursors(),
      },
    );
    this.outbox = new Outbox(
      this.shelf,
      () => this.connection,
      (waiting) => (this.unsent = waiting),
    );
    this.launches = new Launches(this.connection);
    this.past = new Past(
      (session) => this.world.stories[session],
      (session, story) => this.putStory(session, story),
    );
  }

  get maySteer(): boolean {
    return this.me === null || this.me.role === "operator" || this.me.role === "owner";
  }

  get isOpen(): boolean {
    return this.link.state === "open" && this.world.told;
  }

  /** Paints what is remembered, then finds out whether this device is known. */
  async start(): Promise<void> {
    const cards = await this.shelf.cards();
    if (!this.world.told) this.world = { ...this.world, cards: { ...cards, ...this.world.cards } };
    await this.outbox.open();
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
      else void this.keep("now");
    });
    addEventListener("pagehide", () => void this.keep("now"));
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
    this.world = EMPTY_WORLD;
    this.me = null;
    this.current = null;
    this.entry = "needed";
  }

  /** Looks at a session: everything of it is told from now on. */
  async open(session: string | null): Promise<void> {
    if (this.current === session) return;
    if (this.current) void this.keep("now");
    this.flush();
    this.current = session;
    this.followed = new Set();
    if (!session) return this.watch();
    this.latest = session;
    this.seen = [...this.seen.filter((id) => id !== session), session];
    if (!this.world.stories[session]) {
      const story = await this.shelf.story(session);
      if (story && !this.world.stories[session]) this.putStory(session, story);
    }
    if (this.current === session) this.join(session);
  }

  send(session: string, text: string, attachments: Attachment[], mode: ModeWord | null): void {
    const id = this.connection.newId("m");
    const created_at = new Date().toISOString();
    const unsent = { id, session_id: session, text, attachments, mode, created_at };
    void this.outbox.send(unsent).then((taken) => {
      if (!taken) this.complain(t.trouble.tooManyUnsent);
    });
  }

  /** Again, under the same id; after an unknown delivery only a new id may try. */
  retrySend(session: string, id: string, code: string, text: string, files: Attachment[]): void {
    if (this.unsent.some((it) => it.id === id)) return this.outbox.retry(id);
    const fresh = code === "delivery_unknown" ? this.connection.newId("m") : id;
    const created_at = new Date().toISOString();
    const unsent = { session_id: session, text, attachments: files, mode: null, created_at };
    void this.outbox.send({ id: fresh, ...unsent });
  }

  dropSend(id: string): void {
    void this.outbox.drop(id);
  }

  async answer(response: PermissionResponse & { session_id: string }): Promise<void> {
    const id = response.prompt_id;
    if (this.answering.has(id)) return;
    this.answering = new Set(this.answering).add(id);
    try {
      await this.connection.ask("permission_response", response);
    } catch (error) {
      if (error instanceof Refused && error.code === "prompt_not_found") {
        this.complain(t.trouble.settledElsewhere);
      } else this.complainOf(error);
    } finally {
      const rest = new Set(this.answering);
      rest.delete(id);
      this.answering = rest;
    }
  }

  async stop(session: string): Promise<void> {
    if (this.stopping.has(session)) return;
    this.stopping = new Set(this.stopping).add(session);
    try {
      await this.connection.ask("agent_interrupt", { session_id: session });
    } catch (error) {
      // The run ended by itself: what was wanted is so.
      if (!(error instanceof Refused && error.code === "agent_not_active")) this.complainOf(error);
    } finally {
      const rest = new Set(this.stopping);
      rest.delete(session);
      this.stopping = rest;
    }
  }

  setModel = (session_id: string, model_id: string) =>
    this.attempt(this.connection.ask("agent_set_model", { session_id, model_id }));
  setMode = (session_id: string, mode: string) =>
    this.attempt(this.connection.ask("agent_set_permission_mode", { session_id, mode }));
  setEffort = (session_id: string, effort: string) =>
    this.attempt(this.connection.ask("agent_set_effort", { session_id, effort }));
  close = (session_id: string) =>
    this.attempt(this.connection.ask("close_session", { session_id }));
  archive = (session_id: string, archived: boolean) =>
    this.attempt(api.archive(session_id, archived));

  async erase(session: string): Promise<boolean> {
    if (!(await this.attempt(this.eraseClosed(session)))) return false;
    await this.shelf.dropStory(session);
    const { [session]: _card, ...cards } = this.world.cards;
    const { [session]: _story, ...stories } = this.world.stories;
    this.world = { ...this.world, cards, stories };
    return true;
  }

  /** What runs is ended first: a machine would bring it back. */
  private async eraseClosed(session_id: string): Promise<void> {
    try {
      await api.erase(session_id);
    } catch (error) {
      if (!(error instanceof Failed && error.code === "session_connected")) throw error;
      await this.connection.ask("close_session", { session_id });
      await api.erase(session_id);
    }
  }

  rename(session_id: string, title: string): void {
    this.command(() => this.connection.say("session_rename", { session_id, title }));
  }

  queueEdit(session_id: string, client_message_id: string, content: string): void {
    const edit = { session_id, client_message_id, content };
    this.command(() => this.connection.say("queue_edit", edit));
  }

  queueDiscard(session_id: string, client_message_id: string): void {
    this.command(() => this.connection.say("queue_discard", { session_id, client_message_id }));
  }

  queueMove(session_id: string, client_message_id: string, position: number): void {
    const move = { session_id, client_message_id, position };
    this.command(() => this.connection.say("queue_move", move));
  }

  queueResume(session_id: string): void {
    this.command(() => this.connection.say("queue_resume", { session_id }));
  }

  complain(words: string): void {
    this.complaint = words;
  }

  complainOf(error: unknown): void {
    this.complain(error instanceof Error ? error.message : String(error));
  }

  private command(say: () => boolean): void {
    if (!say()) this.complain(t.trouble.offline);
  }

  private async attempt(work: Promise<unknown>): Promise<boolean> {
    try {
      await work;
      return true;
    } catch (error) {
      this.complainOf(error);
      return false;
    }
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

  private cursors(): { session_id: string; last_sequence: number }[] {
    this.flush();
    const session_id = this.current;
    const story = session_id ? this.world.stories[session_id] : undefined;
    this.resumed = null;
    this.followed = new Set();
    if (!session_id || !story || story.cursor === 0) return [];
    this.resumed = session_id;
    return [{ session_id, last_sequence: story.cursor }];
  }

  private greeted(): void {
    this.flush();
    if (this.current && this.current !== this.resumed) this.join(this.current);
    else {
      this.followed = new Set(this.current ? [this.current] : []);
      this.watch();
    }
    this.outbox.sendAll();
  }

  /**
   * From where this page is; whoever asks for a history is told everything from there on. Of a
   * story that is new here, or remembered from long ago, the newest page comes first.
   */
  private join(session_id: string): void {
    if (!this.connection.isOpen) return;
    const last = this.world.cards[session_id]?.sequence ?? 0;
    if (last - (this.world.stories[session_id]?.cursor ?? 0) > this.behindMax(session_id)) {
      this.putStory(session_id, emptyStory(last - PAGE_EVENTS));
    }
    const after_sequence = this.world.stories[session_id]?.cursor ?? 0;
    this.connection.say("history_request", { session_id, after_sequence });
    this.watch();
  }

  private behindMax(session_id: string): number {
    return this.world.stories[session_id]?.cursor ? BEHIND_MAX : PAGE_EVENTS;
  }

  private watch(): void {
    const sessions = this.current ? [this.current] : [];
    this.connection.say("watch", { sessions, others: "cards" });
  }

  private heard(frame: RelayFrame): void {
    this.outbox.heard(frame);
    this.launches.heard(frame);
    if (frame.type === "heartbeat_ack" && frame.server_ts) {
      this.skew_ms = Date.parse(frame.server_ts) - Date.now();
    }
    if (frame.type === "connection_error" && !frame.client_message_id && !frame.request_id) {
      // The view itself says that a session is not there.
      if (!QUIET_CODES.has(frame.code)) this.complain(frame.message);
    }
    if (frame.type === "history_delta" && frame.session_id === this.current) {
      // What came before it was told to the list alone, and would leave a gap in the story.
      if (!this.followed.has(frame.session_id)) this.flush();
      this.followed = new Set([frame.session_id]);
    }
    this.waiting.push(frame);
    if (this.scheduled) return;
    this.scheduled = true;
    const flush = () => this.flush();
    if (document.visibilityState === "visible") requestAnimationFrame(flush);
    else setTimeout(flush, HIDDEN_FLUSH_MS);
  }

  private flush(): void {
    this.scheduled = false;
    const frames = this.waiting;
    if (frames.length === 0) return;
    this.waiting = [];
    const circumstance = { followed: this.followed, now_ms: Date.now() };
    this.world = reduceAll(this.world, frames, circumstance);
    this.heal(frames);
    this.reachRun();
    this.keeping ??= setTimeout(() => void this.keep("soon"), KEEP_EVERY_MS);
  }

  /** A history that begins after what is known leaves a gap: it is asked for from there. */
  private heal(frames: RelayFrame[]): void {
    for (const frame of frames) {
      if (frame.type !== "history_delta" || frame.session_id !== this.current) continue;
      const story = this.world.stories[frame.session_id];
      if (story && frame.from_sequence > story.cursor) return this.join(frame.session_id);
    }
  }

  /** What waits behind a run was said after it began: so far back it is read unasked. */
  private reachRun(): void {
    const story = this.current ? this.world.stories[this.current] : undefined;
    const run = this.current ? this.world.cards[this.current]?.run : null;
    if (!this.current || !story?.complete || story.start === 0 || !run) return;
    const isKnown = story.run_began !== null || story.items.some((item) => item.kind === "run");
    const { past, current } = this;
    if (isKnown || past.failed.has(current)) return;
    void past.load(current).then((isMore) => isMore && this.reachRun());
  }

  private putStory(session: string, story: World["stories"][string]): void {
    const stories = { ...this.world.stories, [session]: story };
    const old = this.seen.slice(0, Math.max(0, this.seen.length - STORIES_OPEN_MAX));
    for (const id of old) delete stories[id];
    this.world = { ...this.world, stories };
  }

  private async keep(story_when: "now" | "soon"): Promise<void> {
    clearTimeout(this.keeping);
    this.keeping = undefined;
    const { cards, stories, told } = this.world;
    if (told) await this.shelf.keepCards($state.snapshot(cards) as typeof cards);
    const story = this.current ? stories[this.current] : undefined;
    const now_ms = Date.now();
    const isDue = story_when === "now" || now_ms - this.story_kept_ms > KEEP_STORY_EVERY_MS;
    if (this.current && story && story.cursor > 0 && isDue) {
      this.story_kept_ms = now_ms;
      await this.shelf.keepStory(this.current, story, now_ms);
    }
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

export const NO_STORY = emptyStory();
