// Older pages of long stories, asked for when a person reads back.
//
// Invariant: one page of a session at a time, and only onto the story that it was asked for.
// Not here: how a page joins a story (past.ts).
import { api } from "../connection/http";
import { prepend } from "./past";
import type { Story } from "./state";

/** Events of a page; the relay gives no more at once. */
export const PAGE_EVENTS = 500;
/** A page that is cut short is asked for again from where it ended, this often. */
const PARTS_MAX = 8;

export class Past {
  loading = $state.raw<ReadonlySet<string>>(new Set());
  failed = $state.raw<ReadonlySet<string>>(new Set());

  constructor(
    private readonly read: (session: string) => Story | undefined,
    private readonly put: (session: string, story: Story) => void,
  ) {}

  /** True when there is more than before. */
  async load(session: string): Promise<boolean> {
    const start = this.read(session)?.start ?? 0;
    if (start === 0 || this.loading.has(session)) return false;
    this.loading = new Set(this.loading).add(session);
    this.failed = without(this.failed, session);
    const from = Math.max(0, start - PAGE_EVENTS);
    try {
      const events = [];
      let after = from;
      for (let part = 0; part < PARTS_MAX && after < start; part += 1) {
        const page = await api.history(session, after, start - after);
        events.push(...page.events);
        if (page.last_sequence <= after) break;
        after = page.last_sequence;
      }
      const story = this.read(session);
      // Begun anew meanwhile, or not all of it came: then nothing is said of it.
      if (story?.start !== start || after < start) return false;
      this.put(session, prepend(story, from, events));
      return true;
    } catch {
      this.failed = new Set(this.failed).add(session);
      return false;
    } finally {
      this.loading = without(this.loading, session);
    }
  }
}

function without(all: ReadonlySet<string>, one: string): ReadonlySet<string> {
  const rest = new Set(all);
  rest.delete(one);
  return rest;
}
