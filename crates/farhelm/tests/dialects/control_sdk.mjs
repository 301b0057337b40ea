// A program as people write it with the Claude Agent SDK; the agent is the relay's demo agent.
// Says what came of each step as one JSON object.
const [sdk, farhelm] = process.argv.slice(2);
const { query } = await import(sdk);

const asked = [];
let decide = (input) => ({ behavior: "allow", updatedInput: input });
const options = {
  pathToClaudeCodeExecutable: farhelm,
  executableArgs: ["control", "--session", "demo"],
  includePartialMessages: true,
  canUseTool: async (tool, input) => {
    asked.push([tool, input]);
    return decide(input);
  },
};

// What the person types, and the end of it.
const typed = [];
let wake = () => {};
const say = (text) => {
  typed.push(text);
  wake();
};
async function* input() {
  for (;;) {
    while (typed.length > 0) {
      const text = typed.shift();
      if (text === null) return;
      const message = { role: "user", content: text };
      yield { type: "user", message, parent_tool_use_id: null, session_id: "" };
    }
    await new Promise((resolve) => (wake = resolve));
  }
}

const told = {};
const session = query({ prompt: input(), options });
let model, mode, streamed = false;

// The next result, and what is seen on the way.
const turn = async (text, onStream = () => {}) => {
  say(text);
  for (;;) {
    const { value, done } = await session.next();
    if (done) throw new Error("the session ended early");
    if (value.type === "system" && value.subtype === "init") {
      model = value.model;
      mode = value.permissionMode;
    }
    if (value.type === "stream_event" && value.event.type === "content_block_delta") {
      streamed = true;
      onStream();
    }
    if (value.type === "result") return value;
  }
};
const brief = (result) => [result.subtype, result.result ?? result.errors.join("; ")];

told.hello = brief(await turn("hello"));
told.models = (await session.supportedModels()).map((it) => it.value);
told.allowed = brief(await turn("ask: ls"));
decide = () => ({ behavior: "deny", message: "User rejected this command." });
const denied = await turn("ask: rm");
told.denied = brief(denied);
told.denials = denied.permission_denials.map((it) => ({
  tool_name: it.tool_name,
  command: it.tool_input.command,
}));
decide = () => ({ behavior: "allow", updatedInput: { command: "safe" } });
told.edited = brief(await turn("ask: risky"));
await session.setModel("demo-large");
await session.setPermissionMode("bypassPermissions");
told.plan = await session.setPermissionMode("plan").then(() => "set", (error) => error.message);
told.free = brief(await turn("ask: free"));
told.model = model;
told.mode = mode;
let stopped;
told.interrupted = brief(await turn("slow: 200", () => (stopped ??= session.interrupt())));
await stopped;
told.streamed = streamed;
told.asked = asked;
say(null);
for await (const rest of session) void rest;

for await (const message of query({ prompt: "once", options: { ...options, canUseTool: undefined } })) {
  if (message.type === "result") told.once = brief(message);
}
console.log(JSON.stringify(told));
