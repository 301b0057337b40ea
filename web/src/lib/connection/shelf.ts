// What the page keeps in the browser: unsent words, drafts, and a memory of sessions to paint
// before the relay answers.
//
// Invariant: a browser that keeps nothing (private windows) changes how fast the page is, never
// what it says.
// Not here: when to send what is kept (outbox.ts).
import { openDB, type DBSchema, type IDBPDatabase } from "idb";
import type { Attachment, ModeWord } from "../wire/generated";
import type { Card, Story } from "../session/state";

/** Words of a person that no relay has confirmed yet. */
export interface Unsent {
  id: string;
  session_id: string;
  text: string;
  attachments: Attachment[];
  mode: ModeWord | null;
  created_at: string;
}

/** A story without its parts that cannot be stored or will come again. */
export type KeptStory = Story & { session_id: string; kept_at: number };

interface Schema extends DBSchema {
  outbox: { key: string; value: Unsent };
  cards: { key: string; value: Card };
  stories: { key: string; value: KeptStory; indexes: { kept_at: number } };
  drafts: { key: string; value: string };
}

/** Stories that are remembered; the longest unseen one is forgotten first. */
export const STORIES_KEPT_MAX = 30;
/** Items of a story beyond which it is not remembered but asked for again. */
export const STORY_ITEMS_MAX = 20_000;

export class Shelf {
  private readonly database: Promise<IDBPDatabase<Schema> | null>;

  constructor(name = "farhelm") {
    this.database = openDB<Schema>(name, 1, {
      upgrade(database) {
        database.createObjectStore("outbox", { keyPath: "id" });
        database.createObjectStore("cards");
        const stories = database.createObjectStore("stories", { keyPath: "session_id" });
        stories.createIndex("kept_at", "kept_at");
        database.createObjectStore("drafts");
      },
    }).catch(() => null);
  }

  async unsent(): Promise<Unsent[]> {
    const all = await this.attempt((database) => database.getAll("outbox"));
    return (all ?? []).sort((a, b) => a.created_at.localeCompare(b.created_at));
  }

  async keepUnsent(unsent: Unsent): Promise<void> {
    await this.attempt((database) => database.put("outbox", unsent));
  }

  async dropUnsent(id: string): Promise<void> {
    await this.attempt((database) => database.delete("outbox", id));
  }

  async cards(): Promise<Record<string, Card>> {
    const all = await this.attempt((database) => database.getAll("cards"));
    return Object.fromEntries((all ?? []).map((card) => [card.session.session_id, card]));
  }

  async keepCards(cards: Record<string, Card>): Promise<void> {
    await this.attempt(async (database) => {
      const transaction = database.transaction("cards", "readwrite");
      await transaction.store.clear();
      for (const [id, card] of Object.entries(cards)) await transaction.store.put(card, id);
      await transaction.done;
    });
  }

  async story(session_id: string): Promise<Story | null> {
    const kept = await this.attempt((database) => database.get("stories", session_id));
    if (!kept) return null;
    const { session_id: _id, kept_at: _at, ...story } = kept;
    // Whether it is complete is the relay's to say, and drafts go on from what it tells.
    // A page of an earlier version kept whole stories only.
    const { start = 0, orphans = [] } = story as Partial<Story>;
    return { ...story, start, orphans, complete: false, drafts: [] };
  }

  async keepStory(session_id: string, story: Story, now_ms: number): Promise<void> {
    if (story.items.length > STORY_ITEMS_MAX) return;
    await this.attempt(async (database) => {
      await database.put("stories", { ...story, session_id, kept_at: now_ms });
      // By the index: the names alone, the oldest first.
      const names = await database.getAllKeysFromIndex("stories", "kept_at");
      const old = names.slice(0, Math.max(0, names.length - STORIES_KEPT_MAX));
      for (const name of old) await database.delete("stories", name);
    });
  }

  async dropStory(session_id: string): Promise<void> {
    await this.attempt((database) => database.delete("stories", session_id));
  }

  async draft(session_id: string): Promise<string> {
    return (await this.attempt((database) => database.get("drafts", session_id))) ?? "";
  }

  async keepDraft(session_id: string, text: string): Promise<void> {
    await this.attempt(async (database) => {
      if (text) await database.put("drafts", text, session_id);
      else await database.delete("drafts", session_id);
    });
  }

  /** Forgets everything, when a device leaves. */
  async clear(): Promise<void> {
    await this.attempt(async (database) => {
      for (const store of ["outbox", "cards", "stories", "drafts"] as const) {
        await database.clear(store);
      }
    });
  }

  private async attempt<T>(
    work: (database: IDBPDatabase<Schema>) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      const database = await this.database;
      return database ? await work(database) : undefined;
    } catch {
      return undefined;
    }
  }
}
