// What the page knows, as plain values.
//
// Invariant: nothing in here is changed after it was handed out; a new world shares what stayed.
// Not here: how an event changes it (reduce.ts), what is on screen (features/).
import type {
  AgentConfig,
  Attachment,
  Catalog,
  Diff,
  ErrorBody,
  Location,
  ModeWord,
  OpenPrompt,
  OutcomeWord,
  Part,
  PlanEntry,
  Session,
  ToolKindWord,
  ToolStatusWord,
  Usage,
} from "../wire/generated";
import type { SessionEvent } from "./reduce";

/** Words of a person or an agent, finished. */
export interface MessageItem {
  kind: "message";
  key: string;
  id: string;
  role: "user" | "assistant" | "system";
  text: string;
  parts: Part[] | null;
  at: string | null;
  parent: string | null;
  sealed: boolean;
  /** Of a person's message, where the relay told it. */
  delivery: { at: string; by: string | null } | null;
  /** How long it was thought, where this page saw it happen. */
  thought_ms: number | null;
}

/** One call of a tool, as far as it is. */
export interface ToolItem {
  kind: "tool";
  key: string;
  id: string;
  tool: string;
  tool_kind: ToolKindWord;
  status: ToolStatusWord;
  title: string | null;
  input: unknown;
  output: string | null;
  output_bytes: number | null;
  diffs: Diff[];
  locations: Location[];
  parent: string | null;
  began_at: string | null;
  ended_at: string | null;
}

/** The end of a run. */
export interface RunItem {
  kind: "run";
  key: string;
  outcome: OutcomeWord;
  reason: string | null;
  usage: Usage | null;
  began_at: string | null;
  ended_at: string | null;
  /** How long one went on that was cut off: its end is told much later than it came. */
  lasted_ms: number | null;
}

/** A question that was settled: who, what, when. */
export interface AnswerItem {
  kind: "answer";
  key: string;
  prompt: string;
  question: string;
  command: string | null;
  choice: string | null;
  effect: "allowed" | "denied" | "other" | "declined" | "expired" | "withdrawn";
  by: string | null;
  at: string | null;
}

/** Something that happened beside the conversation. */
export interface NoticeItem {
  kind: "notice";
  key: string;
  word: string;
  text: string;
  at: string | null;
}

/** A message that did not reach the agent. */
export interface FailedItem {
  kind: "failed";
  key: string;
  send: Send;
  error: ErrorBody;
  at: string | null;
}

export type Item = MessageItem | ToolItem | RunItem | AnswerItem | NoticeItem | FailedItem;

/** A person's message that the relay has and the agent has not taken up yet. */
export interface Send {
  id: string;
  text: string;
  attachments: Attachment[];
  mode: ModeWord | null;
  by: string | null;
  accepted_at: string | null;
  delivered_at: string | null;
}

/** A message in the making. */
export interface Draft {
  id: string;
  /** One text for each part, in order. */
  parts: { kind: "text" | "thinking"; text: string }[];
  began_ms: number;
  /** When the first word that is not a thought came. */
  spoke_ms: number | null;
}

export interface QueueEntry {
  id: string;
  text: string;
  mode: ModeWord | null;
}

/** A question that waits for a person. */
export type Waiting = OpenPrompt & { asked_at: string | null };

/** A session that the relay described: then it has its name. */
export type Described = Session & { session_id: string };

/** What a list shows of a session; told for every session. */
export interface Card {
  session: Described;
  /** The newest event that this shows. */
  sequence: number;
  prompts: Waiting[];
  config: AgentConfig | null;
  run: { id: string; began_at: string | null } | null;
  /** The last run ended badly and no other began since. */
  failed: boolean;
  /** Why it is as it is, in the machine's words. */
  reason: string | null;
  closed: boolean;
  /** When something last happened. */
  touched_at: string | null;
}

/** What is known of the words of a session; told for those that are looked at. */
export interface Story {
  /** Events up to this one are not in here yet; nothing is missing when it is 0. */
  start: number;
  /** Every event after `start` and up to this one is in here. */
  cursor: number;
  /** Whether all that the relay had when it was asked has come. */
  complete: boolean;
  items: Item[];
  /** Where the message or tool call of this id is in `items`. */
  places: Map<string, number>;
  sends: Send[];
  drafts: Draft[];
  queue: { entries: QueueEntry[]; held: boolean };
  plan: PlanEntry[];
  context: { used: number; window: number } | null;
  /** Questions that this story has seen asked and not yet settled. */
  asked: Map<string, Waiting>;
  run_began: { id: string; at: string | null } | null;
  /** About something before `start`: they count when that is loaded. */
  orphans: Orphan[];
}

/** An event whose beginning is not loaded, and where in `items` it stood. */
export interface Orphan {
  event: SessionEvent;
  place: number;
}

export interface World {
  cards: Record<string, Card>;
  stories: Record<string, Story>;
  catalog: Catalog | null;
  /** Whether the list of sessions is the relay's word and not a memory of it. */
  told: boolean;
}

export const EMPTY_WORLD: World = { cards: {}, stories: {}, catalog: null, told: false };

/** Of which nothing up to `start` is loaded. */
export function emptyStory(start = 0): Story {
  return {
    start,
    cursor: start,
    complete: false,
    items: [],
    places: new Map(),
    sends: [],
    drafts: [],
    queue: { entries: [], held: false },
    plan: [],
    context: null,
    asked: new Map(),
    run_began: null,
    orphans: [],
  };
}
