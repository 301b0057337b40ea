// Questions of agents: the link that leads to one, forms, and who else may come in.
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Machine } from "./machine";
import { DESK, openSession, PHONE, Relay, say, shot, Windows, words } from "./stage";

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
afterEach(() => expect(windows.complaints.splice(0)).toEqual([]));

interface Waiting {
  session_id: string;
  prompts: string[];
}

/** A machine whose agent asks as many questions as a journey needs. */
async function asking(label: string, prompts: string[]): Promise<Machine & Waiting> {
  const session_id = `sess_${label}`;
  const machine = new Machine(relay, label);
  const described = { session_id, agent_type: "claude", window_title: label, status: "healthy" };
  await machine.connect([described]);
  for (const prompt_id of prompts) ask(machine, session_id, prompt_id);
  return Object.assign(machine, { session_id, prompts });
}

function ask(machine: Machine, session_id: string, prompt_id: string): void {
  machine.say({
    type: "permission_prompt",
    session_id,
    prompt_id,
    prompt_text: `May I ${prompt_id}?`,
    tool: "Bash",
    input: { command: prompt_id },
    choices: [
      { choice_id: "yes", label: "Yes", is_default: false, effect: "allow_once" },
      { choice_id: "no", label: "No", is_default: false, effect: "reject" },
    ],
  });
}

const link = (session: string, prompt: string) =>
  `${relay.ready.url}/#/s/${session}/p/${encodeURIComponent(prompt)}`;

describe("a link to a question", () => {
  it("opens it, also behind another one, and a stray Enter does not answer it", async () => {
    const machine = await asking("ship", ["git pull", "rm -r /old: 1"]);
    const { page, context } = await windows.paired(relay, PHONE, { hasTouch: true });
    await page.goto(link(machine.session_id, "rm -r /old: 1"));
    const card = page.locator(".decision");
    await card.getByText("rm -r /old: 1").first().waitFor();
    await expect.poll(() => card.evaluate((it) => it === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await shot(page, "phone-light-8-linked");
    await card.getByRole("button", { name: /^No/ }).click();
    const answer = await machine.hears((frame) => frame.type === "permission_response");
    expect([answer.prompt_id, answer.choice_id]).toEqual(["rm -r /old: 1", "no"]);
    // The other one still waits, and takes its place.
    await card.getByText("git pull").first().waitFor();
    expect(await page.getByText("This question is closed.").count()).toBe(0);
    await card.getByRole("button", { name: /^No/ }).click();
    machine.close();
    await context.close();
  });

  it("to one that was answered says by whom, and shows where", async () => {
    const machine = await asking("dock", ["git fetch"]);
    const first = await windows.paired(relay);
    await first.page.goto(link(machine.session_id, "git fetch"));
    await first.page.getByRole("button", { name: /^Yes/ }).click();
    await words(first.page, /Allowed/).waitFor();
    for (let at = 0; at < 40; at += 1) machine.message(machine.session_id, `m${at}`, `Line ${at}`);
    const late = await windows.paired(relay, PHONE);
    await late.page.goto(link(machine.session_id, "git fetch"));
    const told = late.page.getByRole("status").filter({ hasText: "This question is closed." });
    await told.getByText(/Allowed\s+by/).waitFor();
    await late.page.locator(".row.sought").getByText("git fetch").waitFor();
    await shot(late.page, "phone-light-9-late");
    await told.getByRole("button", { name: "Dismiss" }).click();
    await told.waitFor({ state: "detached" });
    machine.close();
    for (const { context } of [first, late]) await context.close();
  });

  it("to one that nobody knows says that it is over", async () => {
    const { page, context } = await windows.paired(relay, PHONE);
    const { sessions } = await relay.api<{ sessions: { session_id: string }[] }>(
      "GET",
      "/v1/sessions",
    );
    const demo = sessions[0]?.session_id ?? "";
    await page.goto(link(demo, "never asked"));
    await page.getByText("This question is closed.").waitFor();
    await context.close();
  });
});

describe("a form", () => {
  const answer = (page: Page) => page.getByRole("button", { name: /^Answer/ });

  it("has one of several, some of several and own words, and waits for all of them", async () => {
    const { page, context } = await windows.paired(relay, PHONE, { hasTouch: true });
    const other = await windows.paired(relay, DESK);
    await openSession(page, /demo/i);
    await openSession(other.page, /demo/i);
    await say(page, "form: kite");
    await page.getByText("has 3 questions for you").first().waitFor();
    expect(await answer(page).isDisabled()).toBe(true);
    await page.getByText("3 questions left to answer.").waitFor();
    await page.getByRole("radio", { name: /The small one/ }).check();
    await page.getByRole("radio", { name: /The large one/ }).check();
    await page.getByRole("checkbox", { name: "Tests" }).check();
    await page.getByRole("checkbox", { name: "A picture" }).check();
    await page.getByRole("textbox", { name: /What belongs to it/ }).fill("a song");
    await page.getByText("1 question left to answer.").waitFor();
    await shot(page, "phone-light-7-form");
    await shot(other.page, "desk-light-9-form");
    await page.getByRole("textbox", { name: /What is it called/ }).fill("Ada");
    await answer(page).click();
    await words(page, /answered: /).waitFor();
    const said = await words(page, /answered: /).innerText();
    expect(said).toContain("Which kite first? The large one");
    expect(said).toContain("What belongs to it? Tests, A picture, a song");
    expect(said).toContain("What is it called? Ada");
    await other.page.getByText(/Answered\s+by/).waitFor();
    expect(await answer(other.page).count()).toBe(0);
    for (const it of [context, other.context]) await it.close();
  });

  it("may be declined with a word", async () => {
    const { page, context } = await windows.paired(relay);
    await openSession(page, /demo/i);
    await say(page, "form: boat");
    await page.getByRole("button", { name: /Skip(?! with)/ }).click();
    await words(page, "not answered", { exact: true }).waitFor();
    await context.close();
  });

  it("with a button for each option is still answered by what was filled in", async () => {
    const machine = await asking("loft", []);
    const { page, context } = await windows.paired(relay);
    const questions = [
      { question: "Which way?", options: [{ label: "Left" }, { label: "Right" }] },
    ];
    machine.say({
      type: "permission_prompt",
      session_id: machine.session_id,
      prompt_id: "way",
      prompt_text: "Which way?",
      questions,
      choices: [
        { choice_id: "option-1", label: "Left", is_default: false, effect: "allow_once" },
        { choice_id: "option-2", label: "Right", is_default: false, effect: "allow_once" },
        { choice_id: "no", label: "Skip", is_default: false, effect: "reject" },
      ],
    });
    await openSession(page, /loft/);
    await page.getByRole("radio", { name: "Right" }).check();
    await answer(page).click();
    const told = await machine.hears((frame) => frame.type === "permission_response");
    expect([told.choice_id, told.answers]).toEqual(["option-2", { "Which way?": "Right" }]);
    machine.close();
    await context.close();
  });
});

describe("a message that failed", () => {
  it("is tried again as it was sent: what did not wait does not wait now", async () => {
    const { page, context } = await windows.paired(relay);
    const sent: Record<string, unknown>[] = [];
    page.on("websocket", (socket) =>
      socket.on("framesent", ({ payload }) => {
        const frame = JSON.parse(payload.toString()) as Record<string, unknown>;
        if (frame.type === "send_message" && frame.content === "fail: boom") sent.push(frame);
      }),
    );
    await page.reload();
    await openSession(page, /demo/i);
    await say(page, "slow: 3000");
    await page.locator('article[aria-busy="true"]').waitFor();
    await page.getByRole("textbox", { name: "Message to the agent" }).fill("fail: boom");
    await page.getByRole("button", { name: "Send now" }).click();
    const row = page.locator(".send.failed").filter({ hasText: "fail: boom" });
    await row.getByRole("button", { name: "Try again" }).click();
    await expect.poll(() => sent.length).toBe(2);
    expect(sent.map((frame) => frame.mode)).toEqual(["steer", "steer"]);
    await page.getByRole("button", { name: "Stop" }).first().click();
    await page.getByRole("button", { name: "Stop" }).first().waitFor({ state: "detached" });
    await context.close();
  });
});

describe("letting somebody in", () => {
  it("makes a code for one who may only watch", async () => {
    const owner = await windows.paired(relay);
    await owner.page.goto(`${relay.ready.url}/#/settings`);
    await owner.page.getByRole("button", { name: "Add a device" }).click();
    await owner.page.getByRole("radio", { name: /^View only Can read/ }).check();
    await owner.page.getByRole("button", { name: "Add a device" }).click();
    await owner.page.getByText("It works once.").waitFor();
    await shot(owner.page, "desk-light-6-invite");
    const to = await owner.page.locator(".offer img").getAttribute("alt");
    const guest = await windows.device(PHONE);
    await guest.page.goto(to ?? "");
    await guest.page.getByRole("link", { name: /demo/i }).first().click();
    await guest.page
      .getByText("View only: you can't send messages or answer questions here.")
      .waitFor();
    for (const { context } of [owner, guest]) await context.close();
  });

  it("makes a token for a machine, tells it once, and lists it", async () => {
    const { page, context } = await windows.paired(relay, PHONE, { hasTouch: true });
    await page.goto(`${relay.ready.url}/#/settings`);
    await page.getByRole("button", { name: "Create a token" }).click();
    await page.getByRole("textbox", { name: "Token name" }).fill("cellar");
    await page.getByRole("radio", { name: /Machine that runs agents/ }).check();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const command = page.getByText(/farhelm proxy --relay/);
    await command.waitFor();
    const token = /--token (\S+)/.exec(await command.innerText())?.[1] ?? "";
    const known = await fetch(`${relay.ready.url}/v1/me`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(((await known.json()) as { role: string }).role).toBe("proxy");
    await page.getByRole("button", { name: "Done" }).click();
    expect(await page.getByText(token).count()).toBe(0);
    await page.getByRole("listitem").filter({ hasText: "cellar" }).waitFor();
    await context.close();
  });
});
