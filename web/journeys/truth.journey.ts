// Never lie: cut connections, killed relays, long sessions, hostile words, and a fair page for all.
import AxeBuilder from "axe-core";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Machine } from "./machine";
import { openSession, PHONE, Relay, say, shot, Windows, words } from "./stage";

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

/** Where a list is when it has stayed there for some pictures: wheels and measured rows move it. */
const atRest = (scroller: Locator) =>
  scroller.evaluate(async (element) => {
    let [last, same] = [Number.NaN, 0];
    while (same < 10) {
      await new Promise(requestAnimationFrame);
      same = element.scrollTop === last ? same + 1 : 0;
      last = element.scrollTop;
    }
    return last;
  });

const box = (page: Page) => page.getByRole("textbox", { name: "Message to the agent" });

describe("without a connection", () => {
  it("the page says so, keeps what is written, and sends it once when it is back", async () => {
    const { page, context } = await windows.paired(relay, PHONE);
    await openSession(page, /demo/i);
    await say(page, "say: before the tunnel");
    await words(page, "before the tunnel", { exact: true }).waitFor();
    await relay.kill();
    await page.getByText(/Offline since/).waitFor();
    await say(page, "say: from the tunnel");
    await page.getByText("Waiting for the connection").waitFor();
    await shot(page, "phone-light-5-offline");
    await relay.start();
    await page.getByText(/Offline since/).waitFor({ state: "detached", timeout: 90_000 });
    await words(page, "from the tunnel", { exact: true }).waitFor();
    for (const said of ["before the tunnel", "from the tunnel"]) {
      expect(await words(page, said, { exact: true }).count()).toBe(1);
    }
    const told = await relay.api<{ events: { type: string; message?: { content: string } }[] }>(
      "GET",
      `/v1/sessions/${page.url().split("/").at(-1)}/history`,
    );
    const sent = told.events.filter((it) => it.message?.content === "say: from the tunnel");
    expect(sent).toHaveLength(1);
    await context.close();
  });

  it("a relay that is killed while one types takes nothing away", async () => {
    const { page, context } = await windows.paired(relay);
    await openSession(page, /demo/i);
    await say(page, "slow: 400");
    await page.locator('article[aria-busy="true"]').getByText("word5").waitFor();
    await box(page).fill("half a thou");
    await relay.kill();
    await box(page).press("End");
    await page.keyboard.type("ght");
    await page.getByText(/Offline since/).waitFor();
    await relay.start();
    await page.getByText(/Offline since/).waitFor({ state: "detached", timeout: 90_000 });
    expect(await box(page).inputValue()).toBe("half a thought");
    await box(page).fill("");
    await say(page, "say: and we go on");
    await words(page, "and we go on", { exact: true }).waitFor();
    await context.close();
  });

  it("paints what it remembers after a reload", async () => {
    const { page, context } = await windows.paired(relay);
    await openSession(page, /demo/i);
    await say(page, "say: remember me");
    await words(page, "remember me", { exact: true }).waitFor();
    // Leaving the view keeps the story.
    await page.goto(`${relay.ready.url}/#/`);
    await page.reload();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    await openSession(page, /demo/i);
    await words(page, "remember me", { exact: true }).waitFor();
    expect(await words(page, "remember me", { exact: true }).count()).toBe(1);
    await context.close();
  });
});

describe("a session of ten thousand messages", () => {
  it("opens at its end, scrolls back, stays put, and jumps to the latest", async () => {
    const machine = new Machine(relay, "barn");
    const id = "sess_long";
    await machine.connect([
      { session_id: id, agent_type: "codex", window_title: "Long", status: "healthy" },
    ]);
    for (let at = 0; at < 10_000; at += 1) {
      machine.message(id, `a${at}`, `Message ${at}. ${"word ".repeat(at % 40)}`);
    }
    const last = () =>
      relay.api<{ sessions: { session_id: string; last_sequence: number }[] }>(
        "GET",
        "/v1/sessions",
      );
    await expect
      .poll(
        async () => (await last()).sessions.find((it) => it.session_id === id)?.last_sequence ?? 0,
        {
          timeout: 90_000,
        },
      )
      .toBeGreaterThan(10_000);
    const { page, context } = await windows.paired(relay);
    await page.getByRole("link", { name: /Long/ }).click();
    await words(page, "Message 9999.").waitFor();
    const rows = await page.locator(".row").count();
    expect(rows).toBeLessThan(200);
    const scroller = page.locator(".scroller");
    await scroller.hover();
    await page.mouse.wheel(0, -4_000);
    await page.getByRole("button", { name: "Latest" }).waitFor();
    const before = await atRest(scroller);
    machine.message(id, "late", "A late word.");
    await page.getByRole("button", { name: "New messages" }).waitFor();
    const after = await atRest(scroller);
    expect(Math.abs(after - before)).toBeLessThan(4);
    await page.getByRole("button", { name: "New messages" }).click();
    await words(page, "A late word.").first().waitFor();
    machine.close();
    await context.close();
  });

  it("is loaded from its end; older pages come as one reads back, and nothing jumps", async () => {
    const { page, context } = await windows.device();
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/history?")) asked.push(request.url());
    });
    // Held until the journey has looked: one sees what is said meanwhile.
    let isOpen = false;
    const waiting: (() => void)[] = [];
    await page.route("**/history?**", async (route) => {
      if (!isOpen) await new Promise<void>((resolve) => waiting.push(resolve));
      await route.continue();
    });
    await page.goto((await relay.pairingCode()).link);
    await page.getByRole("link", { name: /Long/ }).click();
    await words(page, "A late word.").first().waitFor();
    expect(asked).toEqual([]);
    const scroller = page.locator(".scroller");
    await scroller.hover();
    const up = async () => {
      await page.mouse.wheel(0, -6_000);
    };
    await expect
      .poll(async () => {
        if (asked.length === 0) await up();
        return asked.length;
      })
      .toBe(1);
    await scroller.evaluate((element) => (element.scrollTop = 0));
    await page.getByText("Loading older messages…").waitFor();
    await atRest(scroller);
    await shot(page, "desk-light-8-older");
    const row = page
      .locator(".row")
      .getByText(/^Message 9\d\d\d\./)
      .first();
    const text = (await row.innerText()).slice(0, 13);
    const mark = words(page, text).first();
    const before = (await mark.boundingBox())?.y ?? Number.NaN;
    // Every picture counts, not only the last: what jumps and comes back was seen to jump.
    await page.evaluate((text) => {
      const seen = window as unknown as { tops: (number | null)[] };
      seen.tops = [];
      const look = () => {
        const rows = [...document.querySelectorAll(".transcript .row")];
        const row = rows.find((it) => it.textContent?.includes(text));
        seen.tops.push(row ? row.getBoundingClientRect().top : null);
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }, text);
    isOpen = true;
    for (const go of waiting) go();
    await page.getByText("Loading older messages…").waitFor({ state: "detached" });
    const after = async () => Math.abs(((await mark.boundingBox())?.y ?? Number.NaN) - before);
    await expect.poll(after).toBeLessThan(4);
    const tops = await page.evaluate(() => (window as unknown as { tops: (number | null)[] }).tops);
    const jumps = tops.filter((top) => top === null || Math.abs(top - (tops[0] ?? 0)) >= 4);
    expect(jumps).toEqual([]);
    // On to the very beginning, where nothing is missing any more.
    await expect
      .poll(
        async () => {
          await up();
          await scroller.evaluate((element) => (element.scrollTop = 0));
          return words(page, "Message 0.").count();
        },
        { timeout: 90_000 },
      )
      .toBe(1);
    expect(await page.getByText("Older messages are not loaded yet.").count()).toBe(0);
    await page.getByRole("button", { name: "Latest" }).click();
    await words(page, "A late word.").first().waitFor();
    await context.close();
  });
});

describe("a page that stays open", () => {
  /** Counts what listens for the width of the window; runs in the page before its own scripts. */
  const count = () => {
    const seen = window as unknown as { listening: number };
    seen.listening = 0;
    /* eslint-disable @typescript-eslint/unbound-method -- each is called with its own `this` */
    const { addEventListener, removeEventListener } = EventTarget.prototype;
    /* eslint-enable @typescript-eslint/unbound-method */
    const list = MediaQueryList.prototype as EventTarget;
    list.addEventListener = function (...all) {
      seen.listening += 1;
      addEventListener.apply(this, all);
    };
    list.removeEventListener = function (...all) {
      seen.listening -= 1;
      removeEventListener.apply(this, all);
    };
  };

  it("does not listen for the width of its window on behalf of what it no longer shows", async () => {
    const machine = new Machine(relay, "pier");
    const session_id = "sess_pier";
    await machine.connect([
      { session_id, agent_type: "codex", window_title: "Pier", status: "healthy" },
    ]);
    for (let at = 0; at < 60; at += 1) {
      machine.message(session_id, `a${at}`, `Plank ${at}. ${"word ".repeat(60)}`);
    }
    machine.say({
      type: "tool_call",
      session_id,
      tool_call_id: "e1",
      tool: "Edit",
      kind: "edit",
      title: "pier.txt",
      status: "completed",
      diffs: [{ path: "pier.txt", old_text: "rotten\n", new_text: "sound\n" }],
    });
    machine.message(session_id, "end", "The pier is whole.");
    const { page, context } = await windows.device();
    await page.addInitScript(count);
    await page.goto((await relay.pairingCode()).link);
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    const settings = async () => {
      await page.goto(`${relay.ready.url}/#/settings`);
      await page.getByRole("heading", { name: "Devices" }).waitFor();
    };
    const listening = () =>
      page.evaluate(() => (window as unknown as { listening: number }).listening);
    await settings();
    const before = await listening();
    expect(before).toBeGreaterThan(0);
    const diff = page.locator(".diff").getByText("sound");
    for (let visits = 0; visits < 3; visits += 1) {
      await page.getByRole("link", { name: /Pier/ }).click();
      await words(page, "The pier is whole.").waitFor();
      await page.getByRole("button", { name: /Edit pier\.txt/ }).click();
      await diff.waitFor();
      for (let scrolls = 0; scrolls < 3; scrolls += 1) {
        await page.locator(".scroller").hover();
        await page.mouse.wheel(0, -100_000);
        await diff.waitFor({ state: "detached" });
        await page.getByRole("button", { name: "Latest" }).click();
        await diff.waitFor();
      }
      expect(await listening()).toBeGreaterThan(before);
      await settings();
    }
    await expect.poll(listening).toBe(before);
    machine.close();
    await context.close();
  });
});

describe("hostile words", () => {
  it("do no harm: nothing runs, nothing is loaded, nothing hides, nothing freezes", async () => {
    const machine = new Machine(relay, "swamp");
    const id = "sess_foul";
    await machine.connect([
      {
        session_id: id,
        agent_type: "codex",
        window_title: "Foul <img src=x onerror=alert(1)>\u202etxt.exe",
        status: "healthy",
      },
    ]);
    machine.message(
      id,
      "h1",
      '<script>window.hurt=1</script><img src="https://example.org/x.png" onerror="window.hurt=1"><iframe src="//example.org"></iframe>',
    );
    machine.message(
      id,
      "h2",
      "[click](javascript:window.hurt=1) [data](data:text/html,<script>window.hurt=1</script>) ![pic](https://example.org/p.png)",
    );
    machine.message(id, "h3", "safe\u202egnp.exe\u2066 and \u0007 bell \u001b[31mred");
    machine.message(id, "h4", `long ${"x".repeat(400_000)}`);
    machine.message(
      id,
      "h5",
      `\`\`\`html\n<b onclick="window.hurt=1">code</b>\n\`\`\`\n\n<style>body{display:none}</style>`,
    );
    machine.say({
      type: "tool_call",
      session_id: id,
      tool_call_id: "big",
      tool: "Bash",
      kind: "execute",
      title: "cat big.log",
      status: "completed",
      input: { command: "cat big.log" },
      output: `${"y".repeat(900_000)}\n<script>window.hurt=1</script>`,
    });
    machine.message(id, "h6", "The end of the swamp.");
    const { page, context } = await windows.device();
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.goto((await relay.pairingCode()).link);
    await page.getByRole("link", { name: /Foul/ }).click();
    await words(page, "The end of the swamp.").waitFor();
    await page.getByRole("button", { name: /cat big\.log/ }).click();
    await page
      .getByText(/more characters/)
      .first()
      .waitFor();
    await page.getByText("‹U+202E›").first().waitFor();
    expect(await page.evaluate(() => (window as { hurt?: number }).hurt)).toBeUndefined();
    expect(
      await page.locator('.transcript a[href^="javascript"], .transcript a[href^="data"]').count(),
    ).toBe(0);
    expect(
      await page.locator(".transcript iframe, .transcript script, .transcript style").count(),
    ).toBe(0);
    const outside = requests.filter(
      (url) => !url.startsWith(relay.ready.url) && !url.startsWith("data:"),
    );
    expect(outside).toEqual([]);
    await shot(page, "desk-light-6-hostile");
    machine.close();
    await context.close();
  });
});

describe("a fair page", () => {
  const serious = async (page: Page) => {
    await page.evaluate(AxeBuilder.source);
    const found = await page.evaluate(async () => {
      const { axe } = window as unknown as { axe: typeof import("axe-core") };
      const result = await axe.run(document, { resultTypes: ["violations"] });
      return result.violations
        .filter((it) => it.impact === "serious" || it.impact === "critical")
        .map((it) => `${it.id}: ${it.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
    });
    return found;
  };

  for (const colorScheme of ["light", "dark"] as const) {
    it(`has nothing serious on any view, ${colorScheme}`, async () => {
      const stranger = await windows.device(PHONE, { colorScheme });
      await stranger.page.goto(relay.ready.url);
      await stranger.page.getByRole("heading", { name: "Pair this device" }).waitFor();
      // The policy of the page lets no script in but its own; the checker is let in by the test.
      expect(await serious(stranger.page)).toEqual([]);
      await stranger.context.close();
      const { page, context } = await windows.paired(relay, PHONE, { colorScheme });
      expect(await serious(page)).toEqual([]);
      await openSession(page, /demo/i);
      await say(page, "ask: reboot");
      await page.getByRole("button", { name: /^No/ }).waitFor();
      expect(await serious(page)).toEqual([]);
      await page.getByRole("button", { name: /^No/ }).click();
      await words(page, "denied: reboot").last().waitFor();
      expect(await serious(page)).toEqual([]);
      await say(page, "form: kite");
      await page.getByRole("radio").first().waitFor();
      expect(await serious(page)).toEqual([]);
      await page.getByRole("button", { name: /Skip(?! with)/ }).click();
      await words(page, "not answered", { exact: true }).last().waitFor();
      await page.goto(`${page.url()}/p/gone`);
      await page.getByText("This question is closed.").waitFor();
      expect(await serious(page)).toEqual([]);
      await page.getByRole("button", { name: "Details" }).click();
      await page.getByRole("dialog").waitFor();
      expect(await serious(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await page.goto(`${relay.ready.url}/#/settings`);
      await page.getByRole("heading", { name: "Devices" }).waitFor();
      await page.getByRole("button", { name: "Create a token" }).click();
      expect(await serious(page)).toEqual([]);
      await page.goto(`${relay.ready.url}/#/`);
      await page.getByRole("button", { name: "New session" }).first().click();
      await page.getByRole("radio").first().waitFor();
      expect(await serious(page)).toEqual([]);
      await context.close();
    });
  }
});
