// A long story is read from its end: this puts an older page before what is there.
//
// Invariant: a story whose pages were loaded backwards says what it would say had it been read
// from its beginning.
// Not here: when a page is asked for (past.svelte.ts).
import { isSessionEvent } from "./reduce";
import { emptyStory, type Item, type Story } from "./state";
import { applyToStory } from "./story";
import type { RelayFrame } from "../wire/generated";

/** The story with the events after `from` and up to its start before it. */
export function prepend(newer: Story, from: number, events: RelayFrame[]): Story {
  const own = new WeakSet<object>();
  const older = emptyStory(from);
  for (const event of events) {
    if (!isSessionEvent(event) || event.sequence === undefined) continue;
    if (event.sequence <= older.cursor || event.sequence > newer.start) continue;
    applyToStory(older, event, own);
    older.cursor = event.sequence;
  }
  const later = newer.items.slice();
  takeIn(newer, older, later, own);
  const { items, places } = joined(older, newer, later);
  const isKnown = (id: string) => newer.places.has(`m:${id}`);
  const entries = [
    ...older.queue.entries.filter((entry) => !isKnown(entry.id)),
    ...newer.queue.entries,
  ];
  return {
    ...newer,
    start: from,
    items,
    places,
    sends: [...older.sends.filter((send) => !isKnown(send.id)), ...newer.sends],
    queue: { entries, held: newer.queue.held || older.queue.held },
    plan: newer.plan.length > 0 ? newer.plan : older.plan,
    context: newer.context ?? older.context,
    asked: new Map([...older.asked, ...newer.asked]),
    run_began: newer.run_began ?? (later.some(isRun) ? null : older.run_began),
    orphans: older.orphans,
  };
}

const isRun = (item: Item) => item.kind === "run";

/** What came later about something in the older page; an item of it goes where it stood. */
function takeIn(newer: Story, older: Story, later: Item[], own: WeakSet<object>): void {
  // Places in the page itself are final; those of later events are behind all of it.
  const early = older.orphans;
  const length = older.items.length;
  older.orphans = [];
  const still: Story["orphans"] = [];
  let moved = 0;
  for (const { event, place } of newer.orphans) {
    applyToStory(older, event, own);
    const item = older.items.length > length ? older.items.at(-1) : undefined;
    if (item) {
      older.items = older.items.slice(0, length);
      later.splice(place + moved, 0, item);
      moved += 1;
    }
    if (older.orphans.length > 0) still.push({ event, place: length + place + moved });
    older.orphans = [];
  }
  older.orphans = [...early, ...still];
  const first = later.findIndex(isRun);
  const run = later[first];
  if (run?.kind === "run" && run.began_at === null && older.run_began) {
    later[first] = { ...run, began_at: older.run_began.at };
  }
}

/** Both lists as one. What is in both keeps its first place and its last words. */
function joined(older: Story, newer: Story, later: Item[]): Pick<Story, "items" | "places"> {
  const again = new Set(newer.sends.map((send) => send.id));
  for (const item of later) {
    if (item.kind === "message") again.add(item.id);
    else if (item.kind === "failed") again.add(item.send.id);
  }
  const items: Item[] = [];
  const places = new Map<string, number>();
  const put = (item: Item) => {
    const name = nameOf(item);
    const place = name === null ? undefined : places.get(name);
    if (place !== undefined) items[place] = item;
    else {
      if (name !== null) places.set(name, items.length);
      items.push(item);
    }
  };
  for (const item of older.items) {
    // A second attempt takes the place of the failed one.
    if (item.kind !== "failed" || !again.has(item.send.id)) put(item);
  }
  for (const item of later) put(withDelivery(item, older));
  return { items, places };
}

function nameOf(item: Item): string | null {
  if (item.kind === "message") return `m:${item.id}`;
  return item.kind === "tool" ? `t:${item.id}` : null;
}

/** A person's message that was accepted in the older page. */
function withDelivery(item: Item, older: Story): Item {
  if (item.kind !== "message") return item;
  const send = older.sends.find((it) => it.id === item.id);
  if (!send) return item;
  const at = send.delivered_at ?? item.delivery?.at;
  return at ? { ...item, delivery: { at, by: item.delivery?.by ?? send.by } } : item;
}
