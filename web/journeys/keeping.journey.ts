// What a person keeps, takes along and throws away: earlier conversations, exports, deletions; how
// an agent and this device are set; and the page itself while nobody serves it.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FEATURES, Machine, now } from "./machine";
import { openSession, PHONE, Relay, say, shot, Windows, words } from "./stage";

// A conversation as Claude Code leaves it behind, in a home of its own.
const home = mkdtempSync(join(tmpdir(), "farhelm-home-"));
const folder = join(home, "kite");
const projects = join(home, ".claude/projects/-kite");
for (const made of [folder, projects]) mkdirSync(made, { recursive: true });
writeFileSync(
  join(projects, "thread-1.jsonl"),
  `${JSON.stringify({
    type: "user",
    uuid: "u-1",
    sessionId: "thread-1",
    cwd: folder,
    timestamp: "2026-01-01T00:00:00.000Z",
    message: { role: "user", content: "Mend the kite" },
  })}\n`,
);

const relay = new Relay([], home);
const windows = new Windows();
beforeAll(async () => {
  await relay.start();
  await windows.open();
});
afterAll(async () => {
  await windows.close();
  await relay.stop();
  rmSync(home, { recursive: true, force: true });
});
afterEach(() => expect(windows.complaints.splice(0)).toEqual([]));

async function choose(page: Page, action: string): Promise<void> {
  await page.getByRole("button", { name: "Session menu" }).click();
  await page.getByRole("menuitem", { name: action }).click();
}

/** Sessions that this browser remembers; runs in the page. */
function keptCards(): Promise<number> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("farhelm");
    opening.onerror = () => reject(new Error("There is no memory"));
    opening.onsuccess = () => {
      const counting = opening.result.transaction("cards").objectStore("cards").count();
      counting.onsuccess = () => {
        opening.result.close();
        resolve(counting.result);
      };
    };
  });
}

async function startDemo(page: Page, title: string): Promise<string> {
  await page.getByRole("button", { name: "New session" }).first().click();
  await page.getByRole("radio", { name: /demo/i }).check();
  await page.getByRole("button", { name: "Start session" }).click();
  await page.getByText("Send a message to start.").waitFor();
  await choose(page, "Rename");
  await page.getByRole("textbox", { name: "Name" }).fill(title);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: title }).waitFor();
  return page.url().split("/").at(-1) ?? "";
}

describe("an earlier conversation", () => {
  it("of this machine is listed; where it cannot go on, the page says why", async () => {
    const { page, context } = await windows.paired(relay, PHONE);
    await page.getByRole("button", { name: "New session" }).first().click();
    await page.getByRole("tab", { name: "Resume" }).click();
    await page.getByText("Mend the kite").waitFor();
    await shot(page, "phone-light-7-earlier");
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await page.getByRole("alert").getByText("Couldn't start the session").waitFor();
    await context.close();
  });

  it("goes on in a session of its own, with what was said before", async () => {
    const machine = new Machine(relay, "loft");
    const offer = { agents: ["claude"], workspaces: ["/home/ada/loft"] };
    await machine.connect([], { features: [...FEATURES, "resume", "catalog"], catalog: offer });
    const { page, context } = await windows.paired(relay);
    await page.getByRole("button", { name: "New session" }).first().click();
    await page.getByRole("combobox", { name: "Machine" }).selectOption("loft");
    await page.getByRole("tab", { name: "Resume" }).click();
    const asked = await machine.hears((frame) => frame.type === "resumable_list");
    const conversation = {
      agent_type: "claude",
      conversation_id: "thread-9",
      title: "Paint the loft",
      workspace_path: "/home/ada/loft",
      updated_at: now(),
    };
    machine.say({
      type: "resumable_sessions",
      request_id: asked.request_id,
      machine_label: "loft",
      conversations: [conversation],
    });
    await page.getByText("Paint the loft").waitFor();
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    const wish = await machine.hears((frame) => frame.type === "resume_session");
    expect(wish.conversation_id).toBe("thread-9");
    const session_id = "sess_loft";
    const described = {
      session_id,
      agent_type: "claude",
      window_title: "Paint the loft",
      workspace_path: "/home/ada/loft",
      status: "healthy",
    };
    machine.say({ type: "proxy_session_snapshot", sessions: [described] });
    machine.message(session_id, "before-1", "The loft is half blue.");
    const { request_id } = wish;
    machine.say({ type: "session_launch_ack", request_id, session_id, agent_type: "claude" });
    await page.getByRole("heading", { name: "Paint the loft" }).waitFor();
    await words(page, "The loft is half blue.").waitFor();
    machine.close();
    await context.close();
  });
});

describe("a session that is no longer wanted", () => {
  it("is deleted only after a second question, on every device and in the relay", async () => {
    const [first, second] = [await windows.paired(relay), await windows.paired(relay, PHONE)];
    const { page } = first;
    const id = await startDemo(page, "Short lived");
    await second.page.getByRole("link", { name: /Short lived/ }).waitFor();
    await choose(page, "Delete with history");
    const sure = page.getByRole("dialog", { name: "Delete this session and its history?" });
    await sure.getByText("You can't undo this.").waitFor();
    await sure.getByRole("button", { name: "Cancel" }).click();
    await sure.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Short lived" }).waitFor();
    const listed = () => relay.api<{ sessions: { session_id: string }[] }>("GET", "/v1/sessions");
    expect((await listed()).sessions.some((it) => it.session_id === id)).toBe(true);
    await choose(page, "Delete with history");
    await sure.getByRole("button", { name: "Delete with history" }).click();
    await page.getByRole("link", { name: /Short lived/ }).waitFor({ state: "detached" });
    await second.page.getByRole("link", { name: /Short lived/ }).waitFor({ state: "detached" });
    // It is closed first, which takes it from the lists; its history goes right after.
    const isLeft = async () => (await listed()).sessions.some((it) => it.session_id === id);
    await expect.poll(isLeft).toBe(false);
    for (const { context } of [first, second]) await context.close();
  });

  it("goes from every device at once, also when its machine is away", async () => {
    const machine = new Machine(relay, "stable");
    const described = { session_id: "sess_stable", agent_type: "codex", window_title: "Stable" };
    await machine.connect([{ ...described, status: "healthy" }]);
    const [first, second] = [await windows.paired(relay), await windows.paired(relay, PHONE)];
    await second.page.getByRole("link", { name: /Stable/ }).waitFor();
    machine.close();
    await first.page.getByRole("link", { name: /Stable/ }).click();
    await first.page.getByText("Machine offline").first().waitFor();
    await choose(first.page, "Delete with history");
    const sure = first.page.getByRole("dialog", { name: "Delete this session and its history?" });
    await sure.getByText("The machine is offline now").waitFor();
    await sure.getByRole("button", { name: "Delete with history" }).click();
    for (const { page } of [first, second]) {
      await page.getByRole("link", { name: /Stable/ }).waitFor({ state: "detached" });
    }
    for (const { context } of [first, second]) await context.close();
  });

  it("can be taken along first, as Markdown and as JSON", async () => {
    const { page, context } = await windows.paired(relay);
    await openSession(page, /demo/i);
    await say(page, "say: worth keeping");
    await words(page, "worth keeping", { exact: true }).waitFor();
    for (const format of ["Markdown", "JSON"]) {
      const begun = page.waitForEvent("download");
      await choose(page, `Export as ${format}`);
      const text = readFileSync(await (await begun).path(), "utf8");
      expect(text).toContain("worth keeping");
      if (format === "JSON") expect(() => JSON.parse(text) as unknown).not.toThrow();
    }
    await context.close();
  });
});

describe("how an agent is set", () => {
  it("is seen and changed on a phone, and every device shows what the agent says", async () => {
    const machine = new Machine(relay, "porch");
    const session_id = "sess_porch";
    const described = { session_id, agent_type: "claude", window_title: "Porch" };
    await machine.connect([{ ...described, status: "healthy" }]);
    const config = {
      type: "agent_config",
      session_id,
      model_id: "opus",
      permission_mode: "default",
      available_modes: ["default", "plan"],
      capabilities: { interrupt: true, permission_mode_change: true },
    };
    machine.say(config);
    const entries = [
      { text: "Sand the boards", status: "completed" },
      { text: "Oil them", status: "in_progress" },
    ];
    machine.say({ type: "plan", session_id, entries });
    machine.message(session_id, "p1", "The boards are bare.");
    const desk = await windows.paired(relay);
    await openSession(desk.page, /Porch/);
    const { page, context } = await windows.paired(relay, PHONE, { hasTouch: true });
    await openSession(page, /Porch/);
    await page.getByRole("button", { name: "Show details" }).tap();
    const sheet = page.getByRole("dialog", { name: "Details" });
    await sheet.getByText("Oil them").waitFor();
    await shot(page, "phone-light-8-details");
    const mode = sheet.getByRole("combobox", { name: "Permissions" });
    await mode.selectOption("plan");
    const wish = await machine.hears((frame) => frame.type === "agent_set_permission_mode");
    expect(wish.mode).toBe("plan");
    const seen = desk.page.getByRole("combobox", { name: "Permissions" });
    expect(await seen.inputValue()).toBe("default");
    const { request_id } = wish;
    const result = { command: "agent_set_permission_mode", result: "ok" };
    machine.say({ type: "agent_control_result", session_id, request_id, ...result });
    machine.say({ ...config, permission_mode: "plan" });
    await expect.poll(() => seen.inputValue()).toBe("plan");
    await expect.poll(() => mode.inputValue()).toBe("plan");
    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(PHONE.width);
    machine.close();
    for (const it of [desk.context, context]) await it.close();
  });
});

describe("the list", () => {
  it("shows only what is wanted, by agent, machine and state, and says what is chosen", async () => {
    const machine = new Machine(relay, "shed");
    const all = ["Rake", "Spade"].map((window_title, at) => ({
      session_id: `sess_shed_${at}`,
      agent_type: at === 0 ? "codex" : "claude",
      window_title,
      status: "healthy",
    }));
    await machine.connect(all);
    machine.say({ type: "run_started", session_id: "sess_shed_0", run_id: "r1" });
    const { page, context } = await windows.paired(relay, PHONE);
    const link = (name: RegExp) => page.getByRole("link", { name });
    await link(/Rake/).waitFor();
    await link(/demo/i).first().waitFor();
    await page.getByRole("button", { name: "Filter" }).click();
    const group = (name: string) => page.getByRole("group", { name });
    await group("Machine").getByRole("button", { name: "shed" }).click();
    await link(/demo/i).first().waitFor({ state: "detached" });
    await link(/Spade/).waitFor();
    await group("Agent").getByRole("button", { name: "Codex" }).click();
    await link(/Spade/).waitFor({ state: "detached" });
    await shot(page, "phone-light-10-filters");
    await group("State").getByRole("button", { name: "Idle" }).click();
    await page.getByText("No matching sessions.").waitFor();
    await group("State").getByRole("button", { name: "Running" }).click();
    await link(/Rake/).waitFor();
    // Closed, it still says why the list is short.
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("button", { name: "Remove filter: Codex" }).click();
    await page.getByRole("button", { name: "Remove filter: Running" }).click();
    await link(/Spade/).waitFor();
    await page.getByRole("button", { name: "Remove filter: shed" }).click();
    await link(/demo/i).first().waitFor();
    machine.close();
    await context.close();
  });
});

describe("notifications", () => {
  const box = (page: Page) => page.getByRole("checkbox", { name: /^Notify me/ });

  it("that the browser blocks cannot be switched on, and the page says where they can", async () => {
    const { page, context } = await windows.paired(relay);
    await page.goto(`${relay.ready.url}/#/settings`);
    await box(page).waitFor();
    expect(await box(page).isChecked()).toBe(false);
    // As a browser says it after a person refused.
    await page.addInitScript(() => {
      Object.defineProperty(Notification, "permission", { get: () => "denied" });
    });
    await page.reload();
    await page.getByText("Your browser blocks notifications").waitFor();
    expect(await box(page).isDisabled()).toBe(true);
    await context.close();
  });

  it("are off until somebody wants them, and tell what is asked while one looks elsewhere", async () => {
    const { page, context } = await windows.paired(relay);
    await context.grantPermissions(["notifications"], { origin: relay.ready.url });
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    await page.goto(`${relay.ready.url}/#/settings`);
    await page.reload();
    await box(page).waitFor();
    expect(await box(page).isChecked()).toBe(false);
    await box(page).check();
    await page.reload();
    await box(page).waitFor();
    expect(await box(page).isChecked()).toBe(true);
    await page.getByRole("link", { name: /demo/i }).first().waitFor();
    // As a browser does when another window is in front.
    await page.evaluate(() => {
      Object.defineProperty(document, "visibilityState", { get: () => "hidden" });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    const other = await windows.paired(relay);
    await openSession(other.page, /demo/i);
    await say(other.page, "ask: open the window");
    await other.page.getByRole("button", { name: /^No/ }).waitFor();
    const told = () =>
      page.evaluate(async () => {
        const worker = await navigator.serviceWorker.ready;
        return (await worker.getNotifications()).map((it) => it.body);
      });
    await expect.poll(told).toContain("open the window");
    await other.page.getByRole("button", { name: /^No/ }).click();
    await expect.poll(told).toEqual([]);
    for (const it of [other.context, context]) await it.close();
  });
});

describe("diagnostics", () => {
  it("tell how far the session that was last looked at is known", async () => {
    const { page, context } = await windows.paired(relay);
    await openSession(page, /demo/i);
    await say(page, "say: counted");
    await words(page, "counted", { exact: true }).last().waitFor();
    const id = page.url().split("/").at(-1);
    await page.goto(`${relay.ready.url}/#/settings`);
    // The end of the run comes after its words, so the page and the relay are asked until they agree.
    const last = async () => {
      const { sessions } = await relay.api<{
        sessions: { session_id: string; last_sequence: number }[];
      }>("GET", "/v1/sessions");
      return sessions.find((it) => it.session_id === id)?.last_sequence ?? 0;
    };
    const known = page.getByText(/: \d+ of \d+$/);
    await expect
      .poll(async () => {
        const recorded = await last();
        return recorded > 0 && (await known.innerText()).endsWith(` of ${recorded}`);
      })
      .toBe(true);
    await context.close();
  });
});

describe("while nobody serves the page", () => {
  it("it opens from this device after one visit, says so, and goes on when it can", async () => {
    const { page, context } = await windows.paired(relay, PHONE);
    await page.getByRole("link", { name: /demo/i }).first().waitFor();
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    await expect.poll(() => page.evaluate(keptCards)).toBeGreaterThan(0);
    await page.goto("about:blank");
    await relay.kill();
    await page.goto(relay.ready.url);
    await page.getByText("Can't reach Farhelm.").waitFor();
    await page.getByRole("link", { name: /demo/i }).first().waitFor();
    await shot(page, "phone-light-9-shell");
    await relay.start();
    await page.getByText("Can't reach Farhelm.").waitFor({ state: "detached", timeout: 90_000 });
    await openSession(page, /demo/i);
    await say(page, "say: back again");
    await words(page, "back again", { exact: true }).waitFor();
    await context.close();
  });
});
