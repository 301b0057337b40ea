import type { Outgoing } from "../../connection/outbox";

/** On its way into the queue: shown there already, so that it does not jump. */
export function isJoiningQueue(unsent: Outgoing): boolean {
  return unsent.mode === "follow_up" && unsent.refused === null;
}
