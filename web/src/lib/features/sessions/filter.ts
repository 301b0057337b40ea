// Which sessions of the list are wanted: by words, and by agent, machine and state.
//
// Not here: in which order they stand (session/card.ts).
import { standing, type Standing } from "../../session/card";
import type { Card } from "../../session/state";
import { activityOf, agentName, titleOf } from "./words";

/** Nothing chosen means all. */
export interface Filter {
  agent: string | null;
  machine: string | null;
  state: Standing | null;
}

export const ALL: Filter = { agent: null, machine: null, state: null };

/** Choices of a group that are offered; the search finds the rest. */
const CHOICES_MAX = 12;

export type Choices = { [K in keyof Filter]: NonNullable<Filter[K]>[] };

const STATES: Standing[] = ["waiting", "failed", "running", "quiet", "archived"];

/** What there is to choose from; a group in which all are alike offers nothing. */
export function choicesOf(cards: Card[]): Choices {
  const agents = several(cards.map((card) => card.session.agent_type));
  const machines = several(cards.flatMap((card) => card.session.machine_label ?? []));
  const states = new Set(cards.map(standing));
  return {
    agent: agents,
    machine: machines,
    state: states.size > 1 ? STATES.filter((state) => states.has(state)) : [],
  };
}

function several(all: string[]): string[] {
  const names = [...new Set(all)].sort((a, b) => a.localeCompare(b));
  return names.length > 1 ? names.slice(0, CHOICES_MAX) : [];
}

export function isWanted(card: Card, words: string, filter: Filter): boolean {
  const { agent_type, machine_label } = card.session;
  if (filter.agent !== null && agent_type !== filter.agent) return false;
  if (filter.machine !== null && machine_label !== filter.machine) return false;
  if (filter.state !== null && standing(card) !== filter.state) return false;
  return says(card, words.trim().toLowerCase());
}

function says(card: Card, words: string): boolean {
  if (!words) return true;
  const { machine_label, workspace_path, agent_type } = card.session;
  const all = [titleOf(card), agentName(card), agent_type, machine_label, workspace_path];
  const text = [...all, activityOf(card)].join(" ").toLowerCase();
  return words.split(/\s+/).every((word) => text.includes(word));
}
