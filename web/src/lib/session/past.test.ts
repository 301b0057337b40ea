import { describe, expect, it } from "vitest";
import type { RelayFrame } from "../wire/generated";
import { prepend } from "./past";
import { reduceAll } from "./reduce";
import { EMPTY_WORLD, emptyStory, type Story } from "./state";

const SESSION = "sess_1";
const circumstance = { followed: new Set([SESSION]), now_ms: 1_000 };

function at(sequence: number): string {
  return new Date(1_700_000_000_000 + sequence * 1_000).toISOString();
}

/** Chance that is the same in each run. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

/** A session as agents make them: calls, questions, runs and sends that overlap. */
function recorded(seed: number, length: number): RelayFrame[] {
  const pick = chance(seed);
  const open = { tools: [] as string[], prompts: [] as string[], sends: [] as string[] };
  const taken = (list: string[]) => list.splice(pick(list.length), 1)[0];
  let run: string | null = null;
  return Array.from({ length }, (_, index) => {
    const sequence = index + 1;
    const event = (type: string, more: object) => {
      const server_ts = at(sequence);
      const event_id = `e${sequence}`;
      return { type, sequence, event_id, session_id: SESSION, server_ts, ...more } as RelayFrame;
    };
    const message = (message_id: string, role: string) =>
      event("message_event", { message: { message_id, role, content: `words ${sequence}` } });
    const id = `x${sequence}`;
    switch (pick(14)) {
      case 0:
        open.tools.push(id);
        return event("tool_call", {
          tool_call_id: id,
          tool: "Bash",
          kind: "execute",
          status: "running",
        });
      case 1: {
        const tool_call_id = taken(open.tools);
        if (tool_call_id) return event("tool_update", { tool_call_id, status: "completed" });
        break;
      }
      case 2:
        open.prompts.push(id);
        return event("permission_prompt", { prompt_id: id, prompt_text: "May I?", choices: [] });
      case 3: {
        const prompt_id = taken(open.prompts);
        if (prompt_id) {
          return event("permission_prompt_resolved", { prompt_id, answered_by: "ada" });
        }
        break;
      }
      case 4:
        run = id;
        return event("run_started", { run_id: id });
      case 5:
        if (run) {
          const ended = event("run_ended", { run_id: run, outcome: "completed" });
          run = null;
          return ended;
        }
        break;
      case 6:
        open.sends.push(id);
        return event("message_accepted", {
          client_message_id: id,
          content: "do it",
          accepted_at: at(sequence),
          sent_by: "ada",
        });
      case 7: {
        const sent = taken(open.sends);
        if (sent) return message(sent, "user");
        break;
      }
      case 8: {
        const client_message_id = taken(open.sends);
        const code = pick(2) === 0 ? "discarded" : "send_rejected";
        const error = { code, message: "No" };
        if (client_message_id) {
          return event("message_failed", { client_message_id, error, failed_at: at(sequence) });
        }
        break;
      }
      case 9: {
        const client_message_id = open.sends[pick(open.sends.length || 1)];
        const delivered_at = at(sequence);
        if (client_message_id)
          return event("message_delivered", { client_message_id, delivered_at });
        break;
      }
      case 10:
        return event("queue_update", { change: pick(2) === 0 ? "held" : "resumed" });
      case 11: {
        const entries = pick(2) === 0 ? [] : [{ text: `step ${sequence}`, status: "pending" }];
        return event("plan", { entries });
      }
      case 12: {
        const client_message_id = open.sends[pick(open.sends.length || 1)];
        const change = { change: "edited", client_message_id, content: `edited ${sequence}` };
        if (client_message_id) return event("queue_update", change);
        break;
      }
      default:
    }
    return message(id, "assistant");
  });
}

/** The events after `from` as the relay tells them. */
function read(from: number, events: RelayFrame[]): Story {
  const last_sequence = events.length;
  const history_delta = {
    type: "history_delta",
    session_id: SESSION,
    from_sequence: from,
    last_sequence,
    events: events.slice(from),
    has_more: false,
  } as unknown as RelayFrame;
  const world = { ...EMPTY_WORLD, stories: { [SESSION]: emptyStory(from) } };
  return reduceAll(world, [history_delta], circumstance).stories[SESSION]!;
}

describe("a story that is read from its end", () => {
  it("says the same as one that is read from its beginning, whatever the pages are", () => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const events = recorded(seed, 120);
      const whole = read(0, events);
      const pick = chance(seed + 1_000);
      let start = 100 - pick(40);
      let story = read(start, events);
      while (start > 0) {
        const from = Math.max(0, start - 1 - pick(40));
        story = prepend(story, from, events.slice(from, start));
        start = from;
      }
      expect(story, `seed ${seed}`).toEqual(whole);
    }
  });

  it("takes nothing of a page that it has already, and does not touch what it was", () => {
    const events = recorded(7, 60);
    const story = read(30, events);
    const before = structuredClone(story);
    const more = prepend(story, 10, events.slice(10, 50));
    expect(story).toEqual(before);
    expect(more).toEqual(prepend(story, 10, events.slice(10, 30)));
    expect(more.start).toBe(10);
  });
});
