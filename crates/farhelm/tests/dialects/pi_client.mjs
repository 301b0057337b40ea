// pi's own client for programs. It starts its agent as a process that speaks lines; here that is
// this same file, which passes lines on to the socket and back.
// node --experimental-websocket pi_client.mjs CLIENT WS_URL
import { createInterface } from "node:readline";

if (process.argv.includes("--mode")) {
  const socket = new WebSocket(process.env.PI_URL);
  const early = [];
  socket.addEventListener("open", () => early.splice(0).forEach((line) => socket.send(line)));
  socket.addEventListener("message", ({ data }) => process.stdout.write(`${data}\n`));
  socket.addEventListener("close", ({ code }) => process.exit(code === 1000 ? 0 : 1));
  createInterface({ input: process.stdin }).on("line", (line) =>
    socket.readyState === WebSocket.OPEN ? socket.send(line) : early.push(line),
  );
} else {
  const [path, url] = process.argv.slice(2);
  const { RpcClient } = await import(path);
  const cliPath = new URL(import.meta.url).pathname;
  const client = new RpcClient({ cliPath, env: { PI_URL: url } });
  await client.start();
  const told = {};
  const words = (message) => message.content.map((part) => part.text ?? "").join("");

  const state = await client.getState();
  told.first = [state.messageCount, state.isStreaming];
  const events = await client.promptAndWait("say: one two");
  told.events = events.map((event) => event.assistantMessageEvent?.type ?? event.type);
  told.last = await client.getLastAssistantText();
  told.models = (await client.getAvailableModels()).map((it) => `${it.provider}/${it.id}`);
  told.model = (await client.setModel("farhelm", "demo-large")).id;

  // A run that is stopped while something waits behind it.
  const speaks = new Promise((done) => {
    const stop = client.onEvent((event) => {
      if (event.assistantMessageEvent?.type !== "text_delta") return;
      stop();
      done();
    });
  });
  const idle = client.waitForIdle();
  await client.prompt(`say: ${"word ".repeat(500)}`);
  await speaks;
  told.busy = (await client.send({ type: "prompt", message: "now" })).error;
  await client.followUp("say: later");
  await client.abort();
  await idle;
  const last = (await client.getMessages()).at(-1);
  told.aborted = [last.stopReason, words(last)];
  told.queued = (await client.send({ type: "clear_queue" })).data;

  // A permission question is a dialog.
  const methods = [];
  client.onEvent((event) => {
    if (event.type !== "extension_ui_request" || event.method === "notify") return;
    methods.push(event.method);
    const answer = { type: "extension_ui_response", id: event.id };
    const choice = event.method === "confirm" ? { confirmed: true } : { value: event.options[0] };
    client.process.stdin.write(`${JSON.stringify({ ...answer, ...choice })}\n`);
  });
  await client.promptAndWait("ask: ls");
  told.asked = [...methods, await client.getLastAssistantText()];

  await client.setSessionName("tried");
  const after = await client.getState();
  [told.name, told.count] = [after.sessionName, after.messageCount];
  told.impossible = await client.compact().catch((error) => error.message);
  await client.stop();
  process.stdout.write(JSON.stringify(told));
}
