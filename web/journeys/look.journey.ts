// What it looks like, kept as pictures: light and dark, phone and desk.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Machine, now } from "./machine";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  DESK,
  openSession,
  PHONE,
  picture,
  readmePictures,
  Relay,
  say,
  shot,
  SHOTS,
  Windows,
  words,
} from "./stage";

const relay = new Relay();
const windows = new Windows();
let machine: Machine;
const KITE = "sess_kite";
/** The least that a finger hits. */
const FINGER_PX = 44;

beforeAll(async () => {
  rmSync(join(SHOTS, "readme"), { recursive: true, force: true });
  await relay.start();
  await windows.open();
  machine = new Machine(relay, "attic");
  await machine.connect([
    {
      session_id: KITE,
      agent_type: "claude",
      workspace_name: "kite",
      workspace_path: "/home/ada/kite",
      window_title: "Rename the flag",
      status: "healthy",
    },
    {
      session_id: "sess_loom",
      agent_type: "codex",
      workspace_name: "loom",
      workspace_path: "/home/ada/loom",
      window_title: "Nightly build is red",
      status: "healthy",
    },
  ]);
  play(machine);
});
afterAll(async () => {
  machine.close();
  await windows.close();
  await relay.stop();
});

function play(machine: Machine): void {
  const session_id = KITE;
  machine.say({
    type: "agent_config",
    session_id,
    model_id: "opus",
    available_models: ["opus", "sonnet", "haiku"],
    permission_mode: "default",
    available_modes: ["default", "plan", "acceptEdits"],
    effort: "high",
    available_efforts: ["low", "medium", "high"],
    capabilities: { interrupt: true, set_model: true, permission_mode_change: true },
  });
  machine.message(
    session_id,
    "u1",
    "Rename the flag `--fast` to `--quick` everywhere, and keep the old name working for one release.",
    { role: "user" },
  );
  machine.say({ type: "run_started", session_id, run_id: "r1" });
  machine.message(session_id, "a1", "I'll look where the flag is used.", {
    parts: [
      {
        kind: "thinking",
        text: "The flag is probably defined with clap. I should search for it and check the docs too.",
      },
      { kind: "text", text: "I'll look where the flag is used." },
    ],
  });
  machine.say({
    type: "plan",
    session_id,
    entries: [
      { text: "Find every use of the flag", status: "completed" },
      { text: "Rename it, with an alias", status: "in_progress" },
      { text: "Run the tests", status: "pending" },
    ],
  });
  for (const [index, path] of [
    "src/main.rs",
    "src/options.rs",
    "README.md",
    "tests/cli.rs",
  ].entries()) {
    const call = { session_id, tool_call_id: `t${index}`, tool: "Read", kind: "read" };
    machine.say({ type: "tool_call", ...call, title: path, status: "completed", output: "…" });
  }
  machine.say({
    type: "tool_call",
    session_id,
    tool_call_id: "e1",
    tool: "Edit",
    kind: "edit",
    title: "src/options.rs",
    status: "completed",
    diffs: [
      {
        path: "src/options.rs",
        old_text:
          "#[derive(Parser)]\npub struct Options {\n    /// Skip the slow checks.\n    #[arg(long)]\n    pub fast: bool,\n\n    /// Where to write.\n    #[arg(long)]\n    pub output: PathBuf,\n}\n",
        new_text:
          '#[derive(Parser)]\npub struct Options {\n    /// Skip the slow checks.\n    #[arg(long, alias = "fast")]\n    pub quick: bool,\n\n    /// Where to write.\n    #[arg(long)]\n    pub output: PathBuf,\n}\n',
      },
    ],
  });
  machine.say({
    type: "tool_call",
    session_id,
    tool_call_id: "x1",
    tool: "Bash",
    kind: "execute",
    title: "cargo test",
    input: { command: "cargo test" },
    status: "failed",
    output:
      "running 12 tests\ntest cli::quick_is_known ... ok\ntest cli::fast_still_works ... FAILED\n\nfailures:\n    cli::fast_still_works: expected exit code 0, got 2\n\ntest result: FAILED. 11 passed; 1 failed\n",
  });
  machine.message(
    session_id,
    "a2",
    'One test fails: the alias is **hidden** from `--help`, which the test expects.\n\n1. `alias` becomes `visible_alias`\n2. the README gets a line\n\n```rust\n#[arg(long, visible_alias = "fast")]\npub quick: bool, // the old name works for one release\n```\n\n| flag | status |\n|---|---|\n| `--quick` | new |\n| `--fast` | until 2.0 |\n',
  );
  machine.say({ type: "context_usage", session_id, used_tokens: 41_200, window_tokens: 200_000 });
  machine.say({
    type: "run_ended",
    session_id,
    run_id: "r1",
    outcome: "completed",
    usage: { input_tokens: 18_240, output_tokens: 1_204, cost_usd: 0.0831 },
  });
  machine.say({
    type: "proxy_status",
    session_id,
    status: "healthy",
    activity: { kind: "idle", label: "Idle", updated_at: now() },
  });
  machine.say({ type: "run_started", session_id: "sess_loom", run_id: "r2" });
  machine.say({
    type: "proxy_status",
    session_id: "sess_loom",
    status: "healthy",
    activity: { kind: "running_command", label: "cargo test --workspace", updated_at: now() },
  });
}

for (const colorScheme of ["light", "dark"] as const) {
  it(`is calm on a desk, ${colorScheme}`, async () => {
    const { page } = await windows.paired(relay, DESK, { colorScheme });
    await shot(page, `desk-${colorScheme}-0-list`);
    await openSession(page, /Rename the flag/);
    await words(page, "One test fails").waitFor();
    await page.getByText("Read 4 files").waitFor();
    await shot(page, `desk-${colorScheme}-1-session`);
    await page.getByRole("button", { name: /Edit src\/options\.rs/ }).click();
    await page.getByText("pub quick: bool,").first().waitFor();
    if (colorScheme === "light") await picture(page, "desk-light-2-diff", "desk");
    else await shot(page, "desk-dark-2-diff");
    await page.goto(`${relay.ready.url}/#/settings`);
    await page.getByRole("heading", { name: "Devices" }).waitFor();
    await shot(page, `desk-${colorScheme}-3-settings`);
    await page.getByRole("button", { name: "New session" }).click();
    await page.getByText("Folder").first().waitFor();
    await shot(page, `desk-${colorScheme}-4-launch`);
    expect(windows.complaints.splice(0)).toEqual([]);
    await page.close();
  });

  it(`fits a phone, ${colorScheme}`, async () => {
    const { page } = await windows.paired(relay, PHONE, { colorScheme, hasTouch: true });
    await shot(page, `phone-${colorScheme}-0-list`);
    await openSession(page, /Rename the flag/);
    await words(page, "One test fails").waitFor();
    await shot(page, `phone-${colorScheme}-1-session`);
    await page.goto(`${relay.ready.url}/#/`);
    await openSession(page, /demo/i);
    await say(page, "ask: git push --force origin main");
    await page.getByRole("button", { name: /^No/ }).waitFor();
    if (colorScheme === "light") await picture(page, "phone-light-2-decision", "phone");
    else await shot(page, "phone-dark-2-decision");
    await page.getByRole("button", { name: /^No/ }).click();
    await words(page, "denied: git push").last().waitFor();
    await shot(page, `phone-${colorScheme}-3-answered`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(PHONE.width);
    expect(windows.complaints.splice(0)).toEqual([]);
    await page.close();
  });
}

it("asks for a code at the first visit", async () => {
  const { page } = await windows.device(PHONE, { hasTouch: true });
  await page.goto(relay.ready.url);
  await page.getByRole("heading", { name: "Pair this device" }).waitFor();
  await shot(page, "phone-light-4-pair");
  await page.close();
});

it("makes every picture that the README shows", () => {
  const shown = readmePictures();
  expect(shown.length).toBeGreaterThan(0);
  for (const name of shown)
    expect(existsSync(join(SHOTS, "readme", `${name}.png`)), name).toBe(true);
});

/** What can be pressed and is smaller than a fingertip; links within a sentence are left alone. */
async function tooSmall(page: Page): Promise<string[]> {
  return page.evaluate((least) => {
    const found: string[] = [];
    const all = "button, a[href], select, textarea, input, [role='menuitem'], summary";
    for (const element of document.querySelectorAll<HTMLElement>(all)) {
      // A box is as large as the label that ticks it.
      const target = element.closest("label") ?? element;
      const { width, height } = target.getBoundingClientRect();
      const isShown = element.checkVisibility() && width > 1 && height > 1;
      const isInText = element.tagName === "A" && element.closest("p, li") !== null;
      if (!isShown || isInText || element.closest("[aria-hidden='true']")) continue;
      if (width < least - 0.5 || height < least - 0.5) {
        const name = element.getAttribute("aria-label") ?? element.textContent?.trim() ?? "";
        found.push(`${element.tagName} ${name.slice(0, 40)}: ${width} x ${height}`);
      }
    }
    return found;
  }, FINGER_PX);
}

it("has nothing on a phone that a finger misses, and nothing wider than the phone", async () => {
  const { page, context } = await windows.paired(relay, PHONE, { hasTouch: true });
  const small: string[] = [];
  const fits = async (where: string) => {
    small.push(...(await tooSmall(page)).map((it) => `${where}: ${it}`));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide, where).toBeLessThanOrEqual(PHONE.width);
  };
  await fits("list");
  await openSession(page, /Rename the flag/);
  await words(page, "One test fails").waitFor();
  await page.getByRole("button", { name: /Run cargo test/ }).click();
  await page.getByRole("button", { name: "Break long lines" }).first().waitFor();
  await fits("session");
  await page.getByRole("button", { name: "Details" }).click();
  await fits("details");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Session menu" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).waitFor();
  await fits("menu");
  await page.goto(`${relay.ready.url}/#/`);
  await page.reload();
  await openSession(page, /demo/i);
  await say(page, "ask: reboot");
  await page.getByRole("button", { name: /^No/ }).waitFor();
  await fits("decision");
  await page.getByRole("button", { name: "Edit before allowing" }).click();
  await page.getByRole("button", { name: "Deny with a reason" }).click();
  await fits("decision, edited");
  await shot(page, "phone-light-11-edited");
  await page.getByRole("button", { name: /^No/ }).click();
  await words(page, "denied: reboot").waitFor();
  await say(page, "form: kite");
  await page.getByRole("radio", { name: /small/ }).waitFor();
  await fits("form");
  await page.getByRole("button", { name: /Skip(?! with)/ }).click();
  await words(page, "not answered", { exact: true }).waitFor();
  await say(page, "slow: 3000");
  await page.locator('article[aria-busy="true"]').waitFor();
  await page.getByRole("textbox", { name: "Message to the agent" }).fill("say: later");
  await fits("composer while it runs");
  await page.getByRole("button", { name: "Queue" }).click();
  await page.getByRole("region", { name: "1 message queued" }).waitFor();
  await fits("queue");
  await shot(page, "phone-light-12-queue");
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Stop" }).first().click();
  await page.getByText("Stopped").last().waitFor();
  await page.goto(`${relay.ready.url}/#/settings`);
  await page.getByText("Owner").first().waitFor();
  await fits("settings");
  await page.getByRole("button", { name: "Add a device" }).click();
  await fits("invitation");
  await shot(page, "phone-light-13-settings");
  await page.goto(`${relay.ready.url}/#/`);
  await page.getByRole("button", { name: "New session" }).first().click();
  await page.getByRole("radio", { name: /demo/i }).waitFor();
  await fits("launch");
  await shot(page, "phone-light-14-launch");
  expect(small).toEqual([]);
  expect(windows.complaints.splice(0)).toEqual([]);
  await context.close();
});

it("breaks the long lines of an output, and shows them whole where one wants", async () => {
  const { page, context } = await windows.paired(relay, PHONE, { hasTouch: true });
  await openSession(page, /Rename the flag/);
  await words(page, "One test fails").waitFor();
  const last = page.locator("pre.last");
  await last.waitFor();
  const overflow = (element: Element) => element.scrollWidth - element.clientWidth;
  expect(await last.evaluate(overflow)).toBeLessThanOrEqual(0);
  await page.getByRole("button", { name: /Run cargo test/ }).click();
  const figure = page.locator("figure", { hasText: "Output" });
  const output = figure.locator("pre");
  await output.waitFor();
  expect(await output.evaluate(overflow)).toBeLessThanOrEqual(0);
  await figure.getByRole("button", { name: "Break long lines" }).click();
  expect(await output.evaluate(overflow)).toBeGreaterThan(0);
  await context.close();
});
