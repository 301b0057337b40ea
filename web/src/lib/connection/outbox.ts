// Words that wait to be sent, or to be confirmed.
//
// Invariant: a message keeps the id it was written under, on the shelf before it is on the wire,
// until the relay says accepted or failed. Sent again after a reconnect, it happens once.
// Not here: how it stands after that (session/story.ts).
import type { ErrorBody, RelayFrame } from "../wire/generated";
import type { Connection } from "./connection";
import type { Shelf, Unsent } from "./shelf";

/** Messages that may wait here; more are refused with words. */
export const UNSENT_MAX = 100;

export interface Outgoing extends Unsent {
  /** Refused before it was recorded; it waits for the person. */
  refused: ErrorBody | null;
}

export class Outbox {
  private waiting: Outgoing[] = [];

  constructor(
    private readonly shelf: Shelf,
    private readonly connection: () => Connection,
    private readonly changed: (waiting: Outgoing[]) => void,
  ) {}

  /** What an earlier visit left behind. */
  async open(): Promise<void> {
    const kept = await this.shelf.unsent();
    const known = new Set(this.waiting.map((it) => it.id));
    const earlier = kept.filter((it) => !known.has(it.id));
    this.set([...earlier.map((it) => ({ ...it, refused: null })), ...this.waiting]);
  }

  /** On the shelf first, then on the wire. False when too many wait already. */
  async send(unsent: Unsent): Promise<boolean> {
    if (this.waiting.length >= UNSENT_MAX) return false;
    this.set([...this.waiting, { ...unsent, refused: null }]);
    await this.shelf.keepUnsent(unsent);
    this.transmit(unsent);
    return true;
  }

  /** Everything that has no answer yet, in the order in which it was written. */
  sendAll(): void {
    for (const unsent of this.waiting) if (!unsent.refused) this.transmit(unsent);
  }

  /** A person tries a refused one again, under the same id. */
  retry(id: string): void {
    const found = this.waiting.find((it) => it.id === id);
    if (!found) return;
    this.set(this.waiting.map((it) => (it === found ? { ...it, refused: null } : it)));
    this.transmit(found);
  }

  async drop(id: string): Promise<void> {
    this.set(this.waiting.filter((it) => it.id !== id));
    await this.shelf.dropUnsent(id);
  }

  /** Looks at each frame for an answer to something that waits. */
  heard(frame: RelayFrame): void {
    switch (frame.type) {
      case "message_accepted":
      case "message_delivered":
        this.confirmed(frame.client_message_id);
        return;
      case "message_failed":
        // One that was recorded stands in the story; one that was not, only here.
        if (frame.sequence !== undefined) this.confirmed(frame.client_message_id);
        else this.refuse(frame.client_message_id, frame.error);
        return;
      case "connection_error":
        if (frame.client_message_id) {
          this.refuse(frame.client_message_id, { code: frame.code, message: frame.message });
        }
        return;
      case "history_delta":
        for (const event of frame.events) this.heard(event as RelayFrame);
        return;
      default:
        return;
    }
  }

  private transmit(unsent: Unsent): void {
    this.connection().say("send_message", {
      client_message_id: unsent.id,
      session_id: unsent.session_id,
      content: unsent.text,
      attachments: unsent.attachments.length > 0 ? unsent.attachments : undefined,
      created_at: unsent.created_at,
      mode: unsent.mode ?? undefined,
    });
  }

  private confirmed(id: string): void {
    if (this.waiting.some((it) => it.id === id)) void this.drop(id);
  }

  private refuse(id: string, refused: ErrorBody): void {
    if (!this.waiting.some((it) => it.id === id)) return;
    this.set(this.waiting.map((it) => (it.id === id ? { ...it, refused } : it)));
  }

  private set(waiting: Outgoing[]): void {
    this.waiting = waiting;
    this.changed(waiting);
  }
}
