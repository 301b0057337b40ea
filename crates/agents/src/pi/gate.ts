// The gate: a pi extension that asks Farhelm before a tool may do anything but look.
//
// pi has no permission questions of its own. Each tool call that is not known to be harmless is
// put to the driver as an `input` dialog whose title names the call; the driver answers with a
// decision in JSON, at once where the person has decided already. Whatever is not plainly an
// "allow" is a refusal.

const MARK = "farhelm-gate";
const HARMLESS = new Set(["read", "grep", "find", "ls"]);

export default function (pi: any) {
  // Farhelm does not use pi without having heard this.
  pi.on("session_start", async (_event: any, context: any) => {
    context.ui.setStatus(MARK, "closed");
  });

  pi.on("tool_call", async (event: any, context: any) => {
    if (HARMLESS.has(event.toolName)) return undefined;
    const question = JSON.stringify({
      tool: event.toolName,
      call: event.toolCallId,
      input: event.input,
    });
    const answer = await context.ui.input(`${MARK} ${question}`, undefined, {
      signal: context.signal,
    });
    let decision: any;
    try {
      decision = JSON.parse(answer);
    } catch {
      decision = undefined;
    }
    if (decision?.decision !== "allow") {
      return { block: true, reason: decision?.reason || "The person stopped this." };
    }
    if (decision.input && typeof decision.input === "object") {
      for (const name of Object.keys(event.input)) delete event.input[name];
      Object.assign(event.input, decision.input);
    }
    return undefined;
  });
}
