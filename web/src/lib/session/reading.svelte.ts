// What the page knows, and of which session it is told everything.
//
// Invariant: a story has no gap. Only a session whose history was asked for from where its story
// ends is followed, and only what is followed changes a story.
// Not here: how frames change what is known (reduce.ts), what a person does (steering.svelte.ts).
import type { Connection } from "../connection/connection";
import type { Shelf } from "../connection/shelf";
import type { RelayFrame } from "../wire/generated";
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
/** Frames are shown together, at most once per picture; where no picture is drawn, after this. */
const HIDDEN_FLUSH_MS = 100;

export class Reading {
  world = $state.raw<World>(EMPTY_WORLD);
  current = $state.raw<string | null>(null);
  /** The session that is looked at, or was last. */
  latest = $state.raw<string | null>(null);
  readonly past: Past;
  /** The session of which every event is told: from the first page of its history on. */
  private followed: ReadonlySet<string> = new Set();
  private resumed: string | null = null;
  private waiting: RelayFrame[] = [];
  private scheduled = false;
  private keeping: ReturnType<typeof setTimeout> | undefined;
  private seen: string[] = [];
  private story_kept_ms = 0;

  constructor(
    private readonly connection: () => Connection,
    private readonly shelf: Shelf,
  ) {
    this.past = new Past(
      (session) => this.world.stories[session],
      (session, story) => this.putStory(session, story),
    );
  }

  /** What an earlier visit left behind. */
  async remember(): Promise<void> {
    const cards = await this.shelf.cards();
    if (!this.world.told) this.world = { ...this.world, cards: { ...cards, ...this.world.cards } };
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

  /** A session was deleted. */
  async forget(session: string): Promise<void> {
    await this.shelf.dropStory(session);
    const { [session]: _card, ...cards } = this.world.cards;
    const { [session]: _story, ...stories } = this.world.stories;
    this.world = { ...this.world, cards, stories };
  }

  /** Everything, as at a first visit. */
  forgetAll(): void {
    this.world = EMPTY_WORLD;
    this.current = null;
  }

  /** Up to where the session that is looked at is known. */
  cursors(): { session_id: string; last_sequence: number }[] {
    this.flush();
    const session_id = this.current;
    const story = session_id ? this.world.stories[session_id] : undefined;
    this.resumed = null;
    this.followed = new Set();
    if (!session_id || !story || story.cursor === 0) return [];
    this.resumed = session_id;
    return [{ session_id, last_sequence: story.cursor }];
  }

  /** A connection is open: it is told what is looked at. */
  greeted(): void {
    this.flush();
    if (this.current && this.current !== this.resumed) this.join(this.current);
    else {
      this.followed = new Set(this.current ? [this.current] : []);
      this.watch();
    }
  }

  /**
   * From where this page is; whoever asks for a history is told everything from there on. Of a
   * story that is new here, or remembered from long ago, the newest page comes first.
   */
  private join(session_id: string): void {
    if (!this.connection().isOpen) return;
    const last = this.world.cards[session_id]?.sequence ?? 0;
    if (last - (this.world.stories[session_id]?.cursor ?? 0) > this.behindMax(session_id)) {
      this.putStory(session_id, emptyStory(last - PAGE_EVENTS));
    }
    const after_sequence = this.world.stories[session_id]?.cursor ?? 0;
    this.connection().say("history_request", { session_id, after_sequence });
    this.watch();
  }

  private behindMax(session_id: string): number {
    return this.world.stories[session_id]?.cursor ? BEHIND_MAX : PAGE_EVENTS;
  }

  private watch(): void {
    const sessions = this.current ? [this.current] : [];
    this.connection().say("watch", { sessions, others: "cards" });
  }

  heard(frame: RelayFrame): void {
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

  /** On the shelf, for the next visit. */
  async keep(story_when: "now" | "soon"): Promise<void> {
    clearTimeout(this.keeping);
    this.keeping = undefined;
    const { cards, stories, told } = this.world;
    if (told) await this.shelf.keepCards($state.snapshot<typeof cards>(cards));
    const story = this.current ? stories[this.current] : undefined;
    const now_ms = Date.now();
    const isDue = story_when === "now" || now_ms - this.story_kept_ms > KEEP_STORY_EVERY_MS;
    if (this.current && story && story.cursor > 0 && isDue) {
      this.story_kept_ms = now_ms;
      await this.shelf.keepStory(this.current, story, now_ms);
    }
  }
}

export const NO_STORY = emptyStory();
