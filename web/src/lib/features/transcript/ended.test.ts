import { describe, expect, it } from "vitest";
import type { RunItem } from "../../session/state";
import { endOf } from "./ended";

const run: RunItem = {
  kind: "run",
  key: "e3",
  outcome: "completed",
  reason: null,
  usage: null,
  began_at: "2026-01-01T10:00:00Z",
  ended_at: "2026-01-01T12:00:00Z",
  lasted_ms: null,
};
const told = (more: Partial<RunItem>) => {
  const { word, rest } = endOf({ ...run, ...more });
  return word + rest;
};

describe("the end of a run", () => {
  // spec: native/events.1
  it("says Stopped only where somebody stopped it", () => {
    expect(told({ outcome: "interrupted" })).toBe("Stopped · 2 h");
    const cut = { outcome: "interrupted" as const, reason: "Farhelm stopped" };
    expect(told({ ...cut, lasted_ms: 4_000 })).toBe("Interrupted: Farhelm stopped · 4.0 s");
  });

  // spec: native/events.2
  it("counts no time during which nobody knew of it", () => {
    const cut = { outcome: "interrupted" as const, reason: "The session was closed" };
    expect(told(cut)).toBe("Interrupted: The session was closed");
  });

  it("says how long it took and what it used", () => {
    expect(told({ usage: { input_tokens: 900, output_tokens: 80 } })).toBe("2 h · 980 tokens");
    expect(told({ outcome: "failed", reason: "out of tokens" })).toBe(
      "Failed: out of tokens · 2 h",
    );
  });
});
