// Up to which event a person has seen each session, on this device.
import type { Card } from "../../session/state";

const KEY = "farhelm.seen";
/** Sessions that are remembered here; beyond it the oldest ones count as unseen. */
const SEEN_MAX = 500;

function kept(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") as Record<string, number>;
  } catch {
    return {};
  }
}

class Seen {
  private all = $state.raw(kept());

  isUnread(card: Card): boolean {
    const seen = this.all[card.session.session_id];
    return seen !== undefined && card.sequence > seen;
  }

  see(card: Card): void {
    const id = card.session.session_id;
    if ((this.all[id] ?? -1) >= card.sequence) return;
    const entries = Object.entries({ ...this.all, [id]: card.sequence }).slice(-SEEN_MAX);
    this.all = Object.fromEntries(entries);
    try {
      localStorage.setItem(KEY, JSON.stringify(this.all));
    } catch {
      // Then everything counts as seen until the page is opened again.
    }
  }

  /** A session that this device has never shown is not news, only what happens in it later. */
  meet(cards: Card[]): void {
    const fresh = cards.filter((card) => !(card.session.session_id in this.all));
    if (fresh.length === 0) return;
    const met = fresh.map((card) => [card.session.session_id, card.sequence]);
    this.all = { ...this.all, ...(Object.fromEntries(met) as Record<string, number>) };
  }
}

export const seen = new Seen();
