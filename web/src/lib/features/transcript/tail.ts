// What stands below the finished part of a transcript: what is in the making and on its way.
//
// Invariant: in the order in which the transcript will have it, as far as that is known.
import type { Outgoing } from "../../connection/outbox";
import type { Draft, Send } from "../../session/state";

export type TailRow =
  | { kind: "draft"; key: string; draft: Draft }
  | { kind: "send"; key: string; send: Send }
  | { kind: "unsent"; key: string; unsent: Outgoing }
  | { kind: "activity"; key: string; words: string };

export interface Tail {
  drafts: Draft[];
  /** Those that the queue does not show. */
  sends: Send[];
  unsent: Outgoing[];
  /** What the agent does, where that is to be told while it says nothing. */
  activity: string | null;
}

/** A message that steers is read after what the agent says while it is on its way. */
export function tailOf({ drafts, sends, unsent, activity }: Tail): TailRow[] {
  const steers = drafts.length > 0 ? sends.filter((send) => send.mode === "steer") : [];
  const before = sends.filter((send) => !steers.includes(send));
  const rowOf = (send: Send): TailRow => ({ kind: "send", key: `m${send.id}`, send });
  return [
    ...before.map(rowOf),
    ...drafts.map((draft): TailRow => ({ kind: "draft", key: `m${draft.id}`, draft })),
    ...steers.map(rowOf),
    ...(activity !== null && drafts.length === 0
      ? [{ kind: "activity" as const, key: "activity", words: activity }]
      : []),
    ...unsent.map((it): TailRow => ({ kind: "unsent", key: `m${it.id}`, unsent: it })),
  ];
}
