// How much one streamed word costs, and how soon a session can be read. Thread time, so that a
// busy machine does not count; the figures are printed.
import { get } from "node:http";
import type { CDPSession } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Machine } from "./machine";
import { Relay, Windows, words } from "./stage";

const TOKEN_MS_MAX = 2;
const FIRST_VIEW_MS_MAX = 300;
const SCRIPTS_KIB_MAX = 180;
const DELTAS = 400;

const relay = new Relay();
const windows = new Windows();
beforeAll(async () => {
  await relay.start();
  await windows.open();
});
afterAll(async () => {
  await windows.close();
  await relay.stop();
});

/** A machine with one session of so many messages, all of them recorded. */
async function talkative(label: string, id: string, messages: number): Promise<Machine> {
  const machine = new Machine(relay, label);
  await machine.connect([
    { session_id: id, agent_type: "codex", window_title: label, status: "healthy" },
  ]);
  for (let at = 0; at < messages; at += 1) {
    machine.message(id, `a${at}`, `Message ${at}. ${"word ".repeat(at % 40)}`);
  }
  const sessions = () =>
    relay.api<{ sessions: { session_id: string; last_sequence: number }[] }>("GET", "/v1/sessions");
  const last = async () =>
    (await sessions()).sessions.find((it) => it.session_id === id)?.last_sequence ?? 0;
  await expect.poll(last, { timeout: 90_000 }).toBeGreaterThanOrEqual(messages);
  return machine;
}

/** How many bytes come over the wire for a file, compressed as browsers ask for it. */
function wireBytes(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { headers: { "accept-encoding": "br" } }, (answer) => {
      if (answer.headers["content-encoding"] !== "br")
        reject(new Error(`${url} is not compressed`));
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => (bytes += chunk.length));
      answer.on("end", () => resolve(bytes));
    });
    asked.on("error", reject);
  });
}

async function threadSeconds(cdp: CDPSession): Promise<number> {
  const { metrics } = await cdp.send("Performance.getMetrics");
  return metrics.find((it) => it.name === "TaskDuration")?.value ?? Number.NaN;
}

it("a streamed word at ten thousand messages", async () => {
  const machine = await talkative("Stream", "sess_stream", 10_000);
  const { page, context } = await windows.paired(relay);
  await page.getByRole("link", { name: /Stream/ }).click();
  await words(page, "Message 9999.").waitFor();
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = await threadSeconds(cdp);
  let offset = 0;
  for (let at = 0; at < DELTAS; at += 1) {
    const content = `word${at} `;
    const delta = {
      session_id: "sess_stream",
      message_id: "live",
      part: 0,
      kind: "text",
      offset,
      content,
    };
    machine.say({ type: "message_delta", ...delta });
    offset += content.length;
    // As agents speak: a word at a time, not all in one picture.
    await page.waitForTimeout(5);
  }
  await words(page, `word${DELTAS - 1}`).waitFor();
  const token_ms = (((await threadSeconds(cdp)) - before) * 1_000) / DELTAS;
  console.log(
    `SPEED one streamed word at 10,000 messages: ${token_ms.toFixed(2)} ms of main thread`,
  );
  expect(token_ms).toBeLessThan(TOKEN_MS_MAX);
  machine.close();
  await context.close();
});

it("the first view of a thousand messages", async () => {
  const machine = await talkative("Thousand", "sess_thousand", 1_000);
  const { page, context } = await windows.paired(relay);
  // From the socket's first page of history to the last message on screen.
  await page.evaluate(() => {
    const marks = window as unknown as { answered?: number; shown?: number };
    const parse = JSON.parse.bind(JSON);
    JSON.parse = ((text: string) => {
      if (text.startsWith('{"type":"history_delta"')) marks.answered ??= performance.now();
      return parse(text) as unknown;
    }) as typeof JSON.parse;
    new MutationObserver(() => {
      if (marks.shown === undefined && document.body.textContent?.includes("Message 999.")) {
        requestAnimationFrame(() => (marks.shown ??= performance.now()));
      }
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  await page.getByRole("link", { name: /Thousand/ }).click();
  await words(page, "Message 999.").waitFor();
  const shown = () =>
    page.evaluate(() => {
      const { answered, shown } = window as unknown as { answered?: number; shown?: number };
      return answered !== undefined && shown !== undefined ? shown - answered : null;
    });
  await expect.poll(shown).not.toBeNull();
  const view_ms = (await shown()) ?? Number.NaN;
  console.log(`SPEED first view of 1,000 messages: ${view_ms.toFixed(0)} ms after the answer`);
  expect(view_ms).toBeLessThan(FIRST_VIEW_MS_MAX);
  machine.close();
  await context.close();
});

it("what a first visit loads before it is painted", async () => {
  const { page, context } = await windows.device();
  const scripts: string[] = [];
  page.on("request", (request) => {
    if (request.resourceType() === "script") scripts.push(request.url());
  });
  await page.goto((await relay.pairingCode()).link);
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  expect(scripts.length).toBeGreaterThan(0);
  const sizes = await Promise.all([...new Set(scripts)].map(wireBytes));
  const kib = sizes.reduce((sum, bytes) => sum + bytes, 0) / 1_024;
  console.log(`SPEED scripts before the first paint: ${kib.toFixed(1)} KiB (Brotli)`);
  expect(kib).toBeLessThan(SCRIPTS_KIB_MAX);
  await context.close();
});
