// What a person does all day: send, read, decide, queue, stop, start.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Machine } from "./machine";
import { DESK, openSession, PHONE, Relay, say, shot, Windows, words } from "./stage";

// An agent whose program is not there, beside the demo agent.
const broken = JSON.stringify({ name: "broken", command: "/nowhere/broken-agent" });
const relay = new Relay(["--agents", broken]);
const windows = new Windows();
beforeAll(async () => {
  await relay.start();
  await windows.open();
});
afterAll(async () => {
  await windows.close();
  await relay.stop();
});
afterEach(() => expect(windows.complaints.splice(0)).toEqual([]));

const box = (page: Page) => page.getByRole("textbox", { name: "Message to the agent" });
/** The row in which the agent's words appear. */
const SPEAKS = '.row:has(article[aria-busy="true"])';

describe("the way in", () => {
  it("takes the six digits, and the device is listed under its name", async () => {
    const { page } = await windows.device(PHONE);
    await page.goto(relay.ready.url);
    const { code } = await relay.pairingCode();
    await page
      .getByRole("textbox", { name: "Six-digit code" })
      .fill(`${code.slice(0, 3)} ${code.slice(3)}`);
    await page.getByRole("textbox", { name: "Device name" }).fill("Ada's phone");
    await page.getByRole("button", { name: "Pair" }).click();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    await page.goto(`${relay.ready.url}/#/settings`);
    await page.getByText("Ada's phone").waitFor();
    await page.close();
  });

  it("says what is wrong with a wrong code", async () => {
    const { page } = await windows.device(PHONE);
    await page.goto(relay.ready.url);
    await page.getByRole("textbox", { name: "Six-digit code" }).fill("000000");
    await page.getByRole("button", { name: "Pair" }).click();
    await page
      .getByRole("alert")
      .getByText(/wrong, used or expired/)
      .waitFor();
    await page.close();
  });

  it("takes a link, whose secret leaves the address at once, and survives a reload", async () => {
    const { page } = await windows.paired(relay);
    expect(page.url()).not.toContain("pair=");
    await page.reload();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    const stored = await page.evaluate(() => document.cookie + JSON.stringify({ ...localStorage }));
    expect(stored).not.toContain("fh_");
    await page.close();
  });

  it("ends at once when the device is removed elsewhere", async () => {
    const { page } = await windows.paired(relay);
    const { id } = await page.evaluate(
      () => fetch("/v1/me").then((it) => it.json()) as Promise<{ id: string }>,
    );
    await relay.api("DELETE", `/v1/tokens/${id}`);
    await page.getByText("This device was signed out.").waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Pair this device" }).waitFor();
    await page.close();
  });
});

describe("a conversation", () => {
  it("streams what the agent says and tells that the message was delivered", async () => {
    // Half of it stays on the page until the journey has seen it: the rest comes after that.
    const machine = new Machine(relay, "porch");
    const session_id = "sess_porch";
    await machine.connect([
      { session_id, agent_type: "codex", window_title: "Porch", status: "healthy" },
    ]);
    const { page } = await windows.paired(relay);
    await openSession(page, /Porch/);
    await say(page, "count to four");
    const { client_message_id } = await machine.hears((frame) => frame.type === "send_message");
    machine.say({ type: "proxy_send_result", session_id, client_message_id, result: "delivered" });
    machine.say({ type: "run_started", session_id, run_id: "r1" });
    const delta = { type: "message_delta", session_id, message_id: "a1", part: 0, kind: "text" };
    machine.say({ ...delta, offset: 0, content: "one two " });
    const live = page.locator('article[aria-busy="true"]');
    await live.getByText("one two").waitFor();
    machine.say({ ...delta, offset: 8, content: "three four" });
    const whole = "one two three four";
    await live.getByText(whole, { exact: true }).waitFor();
    machine.message(session_id, "a1", whole);
    machine.say({ type: "run_ended", session_id, run_id: "r1", outcome: "completed" });
    await live.waitFor({ state: "detached" });
    await page
      .getByText(/Delivered \d\d:\d\d/)
      .first()
      .waitFor();
    expect(await words(page, whole, { exact: true }).count()).toBe(1);
    machine.close();
    await page.close();
  });

  it("shows a delivery that failed, with its reason and a way to try again", async () => {
    const { page } = await windows.paired(relay);
    await openSession(page, /demo/i);
    await say(page, "fail: send_rejected");
    await page.getByText("Not delivered.").waitFor();
    await page.getByRole("button", { name: "Try again" }).last().click();
    await page.getByText("Not delivered.").waitFor();
    await page.close();
  });

  it("tries again with the files that the message had", async () => {
    const machine = new Machine(relay, "attic");
    const session_id = "sess_attic";
    const described = { session_id, agent_type: "claude", window_title: "Attic" };
    await machine.connect([{ ...described, status: "healthy" }]);
    const { page } = await windows.paired(relay);
    await openSession(page, /Attic/);
    const file = { name: "plan.txt", mimeType: "text/plain", buffer: Buffer.from("123") };
    await page.locator('input[type="file"]').setInputFiles(file);
    await say(page, "as in the plan");
    const first = await machine.hears((frame) => frame.type === "send_message");
    expect(first.attachments).toHaveLength(1);
    const { client_message_id } = first;
    const error = { code: "send_rejected", message: "Not now" };
    const result = { session_id, client_message_id, result: "failed", error };
    machine.say({ type: "proxy_send_result", ...result });
    const row = page.locator(".send.failed").filter({ hasText: "plan.txt" });
    await row.getByRole("button", { name: "Try again" }).click();
    const second = await machine.hears((frame) => frame.type === "send_message");
    expect(second.content).toBe(first.content);
    expect(second.attachments).toEqual(first.attachments);
    machine.close();
    await page.close();
  });

  it("folds a tool call to one line that opens", async () => {
    const { page } = await windows.paired(relay, PHONE);
    await openSession(page, /demo/i);
    await say(page, "tool: lathe");
    await words(page, "used lathe").waitFor();
    await page
      .getByRole("button", { name: /lathe.*Done/ })
      .last()
      .click();
    await page.getByText("lathe: done").waitFor();
    await page.close();
  });

  it("sends a file with its message, which waits for it", async () => {
    const { page } = await windows.paired(relay);
    let go = () => {};
    const held = new Promise<void>((resolve) => (go = resolve));
    await page.route("**/v1/uploads?**", async (route) => {
      await held;
      await route.continue();
    });
    await openSession(page, /demo/i);
    const file = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("12345") };
    await page.locator('input[type="file"]').setInputFiles(file);
    await say(page, "look at this");
    await page.getByText("Will be sent when the files are uploaded.").waitFor();
    go();
    await words(page, "notes.txt, 5 bytes").waitFor();
    expect(await box(page).inputValue()).toBe("");
    await page.close();
  });
});

describe("a question", () => {
  it("is answered on one device and closes on the other, which says by whom", async () => {
    const [first, second] = [await windows.paired(relay), await windows.paired(relay, PHONE)];
    for (const { page } of [first, second]) await openSession(page, /demo/i);
    await say(first.page, "ask: make dinner");
    for (const { page } of [first, second]) await page.getByText("make dinner").first().waitFor();
    await second.page.getByRole("button", { name: /^Yes/ }).click();
    await words(first.page, "ran: make dinner").waitFor();
    await first.page.getByRole("button", { name: /^Yes/ }).waitFor({ state: "detached" });
    await first.page
      .getByText(/Allowed\s+by/)
      .last()
      .waitFor();
    for (const { page } of [first, second]) await page.close();
  });

  it("has nothing chosen, and asks twice before it is always allowed", async () => {
    const { page } = await windows.paired(relay);
    await openSession(page, /demo/i);
    await say(page, "ask: rm -r build");
    const always = page.getByRole("button", { name: /always/i });
    await always.waitFor();
    const focused = await page.evaluate(() => document.activeElement?.className ?? "");
    expect(focused).not.toContain("choice");
    await always.click();
    await page.getByRole("button", { name: /Tap again/ }).waitFor();
    expect(await words(page, "ran: rm -r build").count()).toBe(0);
    await page.keyboard.press("Escape");
    await words(page, "denied: rm -r build").waitFor();
    await page.close();
  });

  it("can be allowed with another command than the one asked for", async () => {
    const { page } = await windows.paired(relay);
    await openSession(page, /demo/i);
    await say(page, "ask: git push --force");
    await page.getByRole("button", { name: "Edit before allowing" }).click();
    await page.getByRole("textbox", { name: "Edit what will run" }).fill("git push");
    await page.getByRole("button", { name: /^Yes/ }).click();
    await words(page, "ran: git push", { exact: true }).waitFor();
    await page.close();
  });

  it("is answered by keys alone, from the list on", async () => {
    const { page } = await windows.paired(relay);
    await page.getByRole("link", { name: /demo/i }).first().focus();
    await page.keyboard.press("Enter");
    await box(page).waitFor();
    await box(page).focus();
    await page.keyboard.type("ask: date");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: /^No/ }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("1");
    await words(page, "denied: date").waitFor();
    await page.close();
  });

  it("waits in a strip on every view, and one tap leads there", async () => {
    const { page } = await windows.paired(relay, PHONE);
    await openSession(page, /demo/i);
    await say(page, "ask: sleep");
    await page.getByRole("button", { name: /^No/ }).waitFor();
    await page.goto(`${relay.ready.url}/#/settings`);
    await page.getByText("1 question needs your answer").click();
    await page.getByRole("button", { name: /^No/ }).click();
    await words(page, "denied: sleep").waitFor();
    expect(await page.title()).toBe("Farhelm");
    await page.close();
  });
});

describe("a run", () => {
  let page: Page;
  beforeEach(async () => {
    ({ page } = await windows.paired(relay, DESK));
    await openSession(page, /demo/i);
  });
  afterEach(() => page.close());

  it("is stopped, and says so", async () => {
    await say(page, "slow: 3000");
    await page.locator('article[aria-busy="true"]').waitFor();
    await page.getByRole("button", { name: "Stop" }).first().click();
    await page.getByText("Stopped").last().waitFor();
    await page.getByRole("button", { name: /^Stop/ }).first().waitFor({ state: "detached" });
  });

  it("has a queue that can be read, edited, re-ordered and emptied", async () => {
    await say(page, "slow: 3000");
    await page.locator('article[aria-busy="true"]').waitFor();
    for (const said of ["say: first", "say: second"]) {
      await box(page).fill(said);
      await page.getByRole("button", { name: "Queue" }).click();
    }
    const queue = page.getByRole("region", { name: "2 messages queued" });
    await queue.getByText("say: second").waitFor();
    await shot(page, "desk-light-7-queue");
    await queue.getByRole("button", { name: "Move up" }).click();
    await expect.poll(() => queue.locator("li").first().innerText()).toContain("say: second");
    await queue.getByRole("button", { name: "Edit" }).first().click();
    await queue.getByRole("textbox").fill("say: zweite");
    await queue.getByRole("button", { name: "Save" }).click();
    await queue.getByText("say: zweite").waitFor();
    await queue.getByRole("button", { name: "Remove" }).last().click();
    await page.getByRole("region", { name: "1 message queued" }).waitFor();
    await page.getByRole("button", { name: "Stop" }).first().click();
    await page.getByText("Paused because you stopped the run.").waitFor();
    await page.getByRole("button", { name: "Resume queue" }).click();
    await words(page, "zweite", { exact: true }).waitFor();
  });

  it("is steered by a message that does not wait, and that never stands above what is said before it", async () => {
    await say(page, "slow: 3000");
    const key = await page.locator(SPEAKS).getAttribute("data-key");
    await box(page).fill("say: turn left");
    // Looks at every picture, from before it is sent until the agent goes on below it.
    await page.evaluate((key) => {
      const places: boolean[] = [];
      Object.assign(window, { places });
      const look = () => {
        const rows = [...document.querySelectorAll<HTMLElement>(".transcript .row[data-key]")];
        const before = rows.find((row) => row.dataset.key === key);
        const steers = rows.find((row) => row.textContent.includes("say: turn left"));
        const top = (row: HTMLElement) => row.getBoundingClientRect().top;
        if (before && steers) places.push(top(before) < top(steers));
        requestAnimationFrame(look);
      };
      look();
    }, key);
    await page.getByRole("button", { name: "Send now" }).click();
    // What the agent says from then on is a message of its own. Its answer comes after all words.
    await page.locator(`${SPEAKS}:not([data-key="${key}"])`).waitFor();
    const places = await page.evaluate(() => (window as unknown as { places: boolean[] }).places);
    expect(places.length).toBeGreaterThan(0);
    expect(places).not.toContain(false);
    await page.getByRole("button", { name: "Stop" }).first().click();
    await page.getByRole("button", { name: "Stop" }).first().waitFor({ state: "detached" });
  });
});

describe("a run of another machine", () => {
  it("has the message that steers below the text that streams, until the agent takes it", async () => {
    const machine = new Machine(relay, "loft");
    const session_id = "sess_loft";
    await machine.connect([
      { session_id, agent_type: "claude", window_title: "Loft", status: "healthy" },
    ]);
    const { page } = await windows.paired(relay);
    await openSession(page, /Loft/);
    machine.say({ type: "run_started", session_id, run_id: "r1" });
    const delta = { type: "message_delta", session_id, message_id: "a1", part: 0, kind: "text" };
    machine.say({ ...delta, offset: 0, content: "going straight " });
    const live = page.locator('article[aria-busy="true"]');
    await live.getByText("going straight").waitFor();
    await box(page).fill("turn left");
    await page.getByRole("button", { name: "Send now" }).click();
    const sent = await machine.hears((frame) => frame.type === "send_message");
    const { client_message_id } = sent;
    const steers = words(page, "turn left", { exact: true });
    await steers.waitFor();
    const top = async (what: typeof live) => (await what.boundingBox())?.y ?? Number.NaN;
    const isBelow = async (what: typeof live) => (await top(steers)) > (await top(what));
    await expect.poll(() => isBelow(live)).toBe(true);
    machine.say({ ...delta, offset: 15, content: "ahead" });
    await live.getByText("going straight ahead").waitFor();
    expect(await isBelow(live)).toBe(true);
    machine.message(session_id, "a1", "going straight ahead");
    machine.say({ type: "proxy_send_result", session_id, client_message_id, result: "delivered" });
    machine.message(session_id, "a2", "left it is");
    machine.say({ type: "run_ended", session_id, run_id: "r1", outcome: "completed" });
    const [before, after] = ["going straight ahead", "left it is"];
    await words(page, after, { exact: true }).waitFor();
    expect(await isBelow(words(page, before, { exact: true }))).toBe(true);
    expect(await isBelow(words(page, after, { exact: true }))).toBe(false);
    machine.close();
    await page.close();
  });
});

describe("a new session", () => {
  it("starts, is renamed, archived and closed", async () => {
    const { page } = await windows.paired(relay);
    await page.getByRole("button", { name: "New session" }).first().click();
    await page.getByRole("radio", { name: /demo/i }).check();
    await page.getByRole("combobox", { name: "Folder" }).fill("");
    await page.getByRole("button", { name: "Start session" }).click();
    await page.getByText("Send a message to start.").waitFor();
    await shot(page, "desk-light-10-new");
    await page.getByRole("button", { name: "say: hello there" }).click();
    await words(page, "hello there", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Session menu" }).click();
    await page.getByRole("menuitem", { name: "Rename" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Second wind");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Second wind" }).waitFor();
    await page.getByRole("button", { name: "Session menu" }).click();
    await page.getByRole("menuitem", { name: "Archive" }).click();
    await page.getByRole("button", { name: "Archived (1)" }).waitFor();
    await page.getByRole("button", { name: "Session menu" }).click();
    await page.getByRole("menuitem", { name: "Close session" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close session" }).click();
    await page.getByText("This session is closed.").waitFor();
    await page.close();
  });

  it("that does not start says why, and can be tried again", async () => {
    const { page } = await windows.paired(relay, PHONE);
    await page.getByRole("button", { name: "New session" }).first().click();
    await page.getByRole("radio", { name: /broken/i }).check();
    await page.getByRole("button", { name: "Start session" }).click();
    const failed = page.getByRole("alert").getByText("Couldn't start the session");
    await failed.waitFor();
    await shot(page, "phone-light-6-failed");
    await page.getByRole("button", { name: "Try again" }).click();
    await failed.waitFor();
    await page.getByRole("radio", { name: /demo/i }).check();
    await page.getByRole("button", { name: "Start session" }).click();
    await page.getByText("Send a message to start.").waitFor();
    await page.close();
  });
});

describe("somebody who may only watch", () => {
  it("sees the question and the words, and is offered nothing to press", async () => {
    const owner = await windows.paired(relay);
    const viewer = await windows.paired(relay, PHONE, {}, "viewer");
    await openSession(owner.page, /demo/i);
    await viewer.page.getByRole("link", { name: /demo/i }).first().click();
    await say(owner.page, "ask: open the gate");
    await viewer.page.getByText("open the gate").first().waitFor();
    await viewer.page
      .getByText("View only: you can't send messages or answer questions here.")
      .waitFor();
    expect(await viewer.page.getByRole("button", { name: /^(Yes|No|Always|Stop)/ }).count()).toBe(
      0,
    );
    await owner.page.getByRole("button", { name: /^No/ }).click();
    await words(viewer.page, "denied: open the gate").waitFor();
    for (const { page } of [owner, viewer]) await page.close();
  });
});

describe("an agent of another machine", () => {
  it("offers its commands after a slash, its models, and nested steps", async () => {
    const machine = new Machine(relay, "cellar");
    const session_id = "sess_cellar";
    const described = {
      session_id,
      agent_type: "claude",
      window_title: "Cellar",
      status: "healthy",
    };
    await machine.connect([described]);
    machine.say({
      type: "agent_config",
      session_id,
      model_id: "opus",
      available_models: ["opus", "haiku"],
      commands: [{ name: "compact", description: "Make room" }, { name: "review" }],
      capabilities: { interrupt: true, set_model: true },
    });
    const call = { session_id, tool: "Task", kind: "other", title: "Look around" };
    machine.say({ type: "tool_call", ...call, tool_call_id: "t1", status: "running" });
    const step = { session_id, tool: "Grep", kind: "search", title: "needle", status: "completed" };
    machine.say({ type: "tool_call", ...step, tool_call_id: "t2", parent_tool_call_id: "t1" });
    const { page } = await windows.paired(relay);
    await openSession(page, /Cellar/);
    await page.getByRole("button", { name: /Look around.*1 step/ }).click();
    await page.getByRole("button", { name: /needle/ }).waitFor();
    await box(page).fill("/co");
    await page.getByRole("option", { name: /compact/ }).waitFor();
    await page.keyboard.press("Tab");
    expect(await box(page).inputValue()).toBe("/compact ");
    await page.getByRole("combobox", { name: "Model" }).selectOption("haiku");
    const asked = await machine.hears((frame) => frame.type === "agent_set_model");
    expect(asked.model_id).toBe("haiku");
    const { request_id } = asked;
    const error = { code: "model_not_available", message: "No haiku here" };
    const result = { command: "agent_set_model", result: "failed", error };
    machine.say({ type: "agent_control_result", session_id, request_id, ...result });
    await page.getByText("No haiku here").waitFor();
    // What is shown is what the agent has, not what was wished.
    await expect
      .poll(() => page.getByRole("combobox", { name: "Model" }).inputValue())
      .toBe("opus");
    machine.close();
    await page.close();
  });
});
