import { describe, expect, it } from "vitest";
import type { Outgoing } from "../../connection/outbox";
import type { Draft, Send } from "../../session/state";
import { tailOf } from "./tail";

const draft = (id: string): Draft => ({ id, parts: [], began_ms: 0, spoke_ms: null });
const send = (id: string, mode: Send["mode"] = null) => ({ id, mode }) as Send;
const unsent = (id: string) => ({ id }) as Outgoing;
const keys = (tail: Parameters<typeof tailOf>[0]) => tailOf(tail).map((row) => row.key);

describe("below what is finished", () => {
  // spec: native/events.4
  it("a message that steers stands after the text that streams while it is on its way", () => {
    const sends = [send("s1", "steer"), send("m1"), send("s2", "steer")];
    const [drafts, mine] = [[draft("a1"), draft("a2")], [unsent("u1")]];
    const shown = keys({ drafts, sends, unsent: mine, activity: null });
    expect(shown).toEqual(["mm1", "ma1", "ma2", "ms1", "ms2", "mu1"]);
  });

  it("messages stand in their order while nothing streams, and what the agent does after them", () => {
    const sends = [send("s1", "steer"), send("m1")];
    const shown = keys({ drafts: [], sends, unsent: [unsent("u1")], activity: "Generating" });
    expect(shown).toEqual(["ms1", "mm1", "activity", "mu1"]);
  });

  it("what the agent does is not told beside what it says", () => {
    const shown = keys({ drafts: [draft("a1")], sends: [], unsent: [], activity: "Generating" });
    expect(shown).toEqual(["ma1"]);
  });
});
