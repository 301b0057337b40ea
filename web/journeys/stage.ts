// The real binary and a real browser, for one file of journeys.
//
// Not here: machines whose agent is the test itself (machine.ts).
import { spawn, type ChildProcess } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

const ROOT = join(import.meta.dirname, "../..");
const BINARY = process.env.FARHELM_BINARY ?? join(ROOT, "target/debug/farhelm");
export const SHOTS = process.env.FARHELM_SHOTS ?? join(ROOT, "target/page-shots");
/** A busy machine is slow, not wrong. */
const WITHIN_MS = 60_000;

export const PHONE = { width: 360, height: 740 };
export const DESK = { width: 1360, height: 860 };

interface Ready {
  url: string;
  ws: string;
  token: string;
  proxy_token: string;
  pid: number;
}

/** A relay with the demo agent, in a folder of its own. */
export class Relay {
  private readonly folder = mkdtempSync(join(tmpdir(), "farhelm-page-"));
  private child: ChildProcess | null = null;
  private address = "127.0.0.1:0";
  ready!: Ready;

  constructor(
    private readonly more: string[] = [],
    /** What the machine has at home: conversations of agents lie there. */
    private readonly home: string | null = null,
  ) {}

  async start(): Promise<void> {
    const file = join(this.folder, "ready.json");
    rmSync(file, { force: true });
    const known = ["up", "--data", join(this.folder, "data"), "--ready-file", file];
    const words = [...known, "--listen", this.address, "--machine", "atlas", ...this.more];
    const env = this.home === null ? process.env : { ...process.env, HOME: this.home };
    const child = spawn(BINARY, words, {
      stdio: ["ignore", "ignore", "pipe"],
      cwd: this.folder,
      env,
    });
    let told = "";
    child.stderr?.on("data", (chunk: Buffer) => (told = (told + chunk.toString()).slice(-4_000)));
    this.child = child;
    const until = Date.now() + WITHIN_MS;
    while (!existsSync(file)) {
      if (child.exitCode !== null) throw new Error(`farhelm ended: ${told}`);
      if (Date.now() > until) throw new Error(`farhelm is not ready: ${told}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.ready = JSON.parse(readFileSync(file, "utf8")) as Ready;
    this.address = new URL(this.ready.url).host;
  }

  /** As a power cut would: nothing is said to anybody. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.end("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this;
    this.child = null;
    if (!child || child.exitCode !== null) return;
    const over = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await over;
  }

  async api<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers = {
      authorization: `Bearer ${this.ready.token}`,
      "content-type": "application/json",
    };
    const told = await fetch(this.ready.url + path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return (await told.json()) as T;
  }

  pairingCode(role = "owner"): Promise<{ code: string; link: string }> {
    return this.api("POST", "/v1/pair/codes", { role });
  }
}

/**
 * Chromium of the system, as many windows as a journey needs. Not the one that a run shares:
 * Playwright attaches to every tab of a browser that it connects to and dismisses their dialogs,
 * also those of the Rust tests beside it, and it starts its own with a mouse.
 */
export class Windows {
  private browser!: Browser;
  /** What pages complained about; a journey that ends with any has failed. */
  readonly complaints: string[] = [];

  async open(): Promise<void> {
    mkdirSync(SHOTS, { recursive: true });
    const executablePath = process.env.FARHELM_CHROMIUM ?? "/usr/bin/chromium";
    this.browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  }

  async close(): Promise<void> {
    await this.browser.close();
  }

  /** A device of its own: its cookies and its memory are not another's. */
  async device(
    viewport = DESK,
    options: { colorScheme?: "light" | "dark"; hasTouch?: boolean } = {},
  ): Promise<{ page: Page; context: BrowserContext }> {
    const context = await this.browser.newContext({
      viewport,
      reducedMotion: "reduce",
      locale: "en-GB",
      ...options,
    });
    context.setDefaultTimeout(WITHIN_MS);
    const page = await context.newPage();
    page.on("console", (message) => {
      // A relay that was killed on purpose cannot be reached, and browsers say so.
      const isNetwork = /ERR_CONNECTION|WebSocket connection|Failed to load resource/;
      if (message.type() === "error" && !isNetwork.test(message.text())) {
        this.complaints.push(message.text());
      }
    });
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    return { page, context };
  }

  /** The same, paired by a link as a person would open it. */
  async paired(
    relay: Relay,
    viewport = DESK,
    options: { colorScheme?: "light" | "dark"; hasTouch?: boolean } = {},
    role = "owner",
  ): Promise<{ page: Page; context: BrowserContext }> {
    const device = await this.device(viewport, options);
    const { link } = await relay.pairingCode(role);
    await device.page.goto(link);
    await device.page.getByRole("heading", { name: "Sessions" }).waitFor();
    return device;
  }
}

/** A picture of what a person sees: after rows that were just opened have found their place. */
export async function shot(page: Page, name: string): Promise<void> {
  await page.evaluate(async () => {
    for (let pictures = 0; pictures < 4; pictures += 1) await new Promise(requestAnimationFrame);
  });
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

/** The same, and a picture of the README besides: `cargo xtask page --pictures` takes it from there. */
export async function picture(page: Page, name: string, readme: string): Promise<void> {
  await shot(page, name);
  mkdirSync(join(SHOTS, "readme"), { recursive: true });
  copyFileSync(join(SHOTS, `${name}.png`), join(SHOTS, "readme", `${readme}.png`));
}

/** The pictures that the README shows. */
export function readmePictures(): string[] {
  const text = readFileSync(join(ROOT, "README.md"), "utf8");
  return [...text.matchAll(/docs\/pictures\/([\w-]+)\.png/g)].map((found) => found[1] ?? "");
}

/** Writes into the composer and sends. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message to the agent" }).fill(text);
  await page.getByRole("textbox", { name: "Message to the agent" }).press("Control+Enter");
}

/** Opens a session of the list by a part of its name. */
export async function openSession(page: Page, name: RegExp | string): Promise<void> {
  await page.getByRole("link", { name }).first().click();
  await page.getByRole("textbox", { name: "Message to the agent" }).waitFor();
}

/** Words in the conversation, not those that are only read aloud. */
export const words = (page: Page, text: string | RegExp, options: { exact?: boolean } = {}) =>
  page.locator(".transcript .row").getByText(text, options);
