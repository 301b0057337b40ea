// The gate: a pi extension that asks Farhelm before a tool may do anything but look.
//
// pi has no permission questions of its own. Each tool call that is not known to be harmless is
// put to the driver as an `input` dialog whose title names the call; the driver answers with a
// decision in JSON, at once where the person has decided already. Whatever is not plainly an
// "allow" is a refusal.

import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";

const MARK = "farhelm-gate";
const HARMLESS = new Set(["read", "grep", "find", "ls"]);

export default function (pi: any) {
  // Farhelm does not use pi without having heard this.
  pi.on("session_start", async (_event: any, context: any) => {
    context.ui.setStatus(MARK, "closed");
  });

  pi.on("before_agent_start", async (_event: any, context: any) => {
    beginRecord(context.sessionManager);
    return undefined;
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

// pi writes the file of a new session with the first answer. A message that it took before would
// be lost with its process, so the file is begun with the first message instead. That reaches
// into pi: only where it is known how (from 0.87 on), and without it nothing else changes.
function beginRecord(record: any) {
  try {
    if (record.flushed !== false || typeof record._rewriteFile !== "function") return;
    const [major, minor] = version().split(".").map(Number);
    if (major === 0 && !(minor >= 87)) return;
    if (existsSync(record.getSessionFile())) return;
    record._rewriteFile();
    record.flushed = true;
  } catch {
    // The file is written with the first answer then.
  }
}

function version(): string {
  let folder = dirname(realpathSync(process.argv[1]));
  for (;;) {
    const file = join(folder, "package.json");
    if (existsSync(file)) {
      const told = JSON.parse(readFileSync(file, "utf8"));
      if (String(told.name).endsWith("/pi-coding-agent")) return told.version;
    }
    const above = dirname(folder);
    if (above === folder) return "0.0.0";
    folder = above;
  }
}
