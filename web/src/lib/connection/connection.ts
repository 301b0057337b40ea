// One conversation with the relay over as many sockets as it takes.
//
// Invariant: what was sent is told as accepted or failed, or is sent again with the same id; each
// followed session is resumed from its cursor. No DOM: sockets, time and chance are given.
// Not here: what frames mean (session/), where unsent words are kept (outbox.ts).
import type { ClientFrame, RelayFrame } from "../wire/generated";
import { t } from "../text/en";
import { waitMs } from "./backoff";

export const PROTOCOL_VERSION = 1;
/** All that this page can make use of. */
export const FEATURES = [
  "watch",
  "deltas",
  "tools",
  "runs",
  "queue",
  "prompt_resolved",
  "prompt_detail",
  "modes",
  "session_rename",
  "paging",
  "context",
  "plan",
  "catalog",
  "resume",
  "tool_output",
];
/** An answer that takes longer will not come. A launch may take 30 s by itself. */
const ANSWER_WITHIN_MS = 40_000;
/** Requests under way; more are refused here. */
const REQUESTS_MAX = 64;
/** After a wake-up the relay has this long to show that the socket still lives. */
const WAKE_WITHIN_MS = 4_000;
/** A socket that does not open by then never will. */
const OPEN_WITHIN_MS = 15_000;
/** The relay's word for a credential that no longer opens anything. */
const CLOSED_FORBIDDEN = 4003;

export interface Socket {
  send(text: string): void;
  close(): void;
  // Bivariant, so that a browser's own WebSocket fits.
  onopen: { bivarianceHack(event?: unknown): void }["bivarianceHack"] | null;
  onmessage: { bivarianceHack(event: { data: unknown }): void }["bivarianceHack"] | null;
  onclose: { bivarianceHack(event: { code: number }): void }["bivarianceHack"] | null;
}

export type Link =
  | { state: "connecting"; since_ms: number }
  | { state: "open"; since_ms: number }
  | { state: "waiting"; since_ms: number; retry_at_ms: number }
  | { state: "refused" }
  | { state: "stopped" };

export interface Figures {
  sockets: number;
  resumed: number;
  dropped: number;
  frames: number;
  latency_ms: number | null;
  heard_at_ms: number | null;
}

/** What the connection needs of the world. */
export interface Surroundings {
  open(): Socket;
  now(): number;
  random(): number;
  /** Whether the credential still opens the relay; asked when a socket does not open. */
  probe(): Promise<"welcome" | "unauthorized" | "unreachable">;
  clientId: string;
  version: string;
}

/** What the connection tells. */
export interface Listener {
  linked(link: Link): void;
  heard(frame: RelayFrame): void;
  /** Hello was answered; what is kept is sent now. */
  greeted(): void;
  /** The cursors of the sessions that are looked at. */
  cursors(): { session_id: string; last_sequence: number }[];
}

/** A request that the relay refused, or that nobody could answer. */
export class Refused extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

interface Pending {
  resolve(frame: RelayFrame): void;
  reject(error: Refused): void;
  timer: ReturnType<typeof setTimeout>;
  /** An answer of this type is a word on the way, not the answer. */
  interim: string | null;
}

type Body<T extends ClientFrame["type"]> = Omit<
  Extract<ClientFrame, { type: T }>,
  "type" | "protocol_version"
>;

export class Connection {
  readonly figures: Figures = {
    sockets: 0,
    resumed: 0,
    dropped: 0,
    frames: 0,
    latency_ms: null,
    heard_at_ms: null,
  };
  private link: Link = { state: "stopped" };
  private socket: Socket | null = null;
  private attempt = 0;
  private offlineSince: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private beating: ReturnType<typeof setInterval> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private silence_ms = 30_000;
  private beat: { id: string; at_ms: number } | null = null;
  private readonly pending = new Map<string, Pending>();
  private counter = 0;

  constructor(
    private readonly around: Surroundings,
    private readonly listener: Listener,
  ) {}

  get isOpen(): boolean {
    return this.link.state === "open";
  }

  start(): void {
    if (this.link.state === "connecting" || this.link.state === "open") return;
    this.dial();
  }

  stop(): void {
    this.leave();
    clearTimeout(this.timer);
    this.tell({ state: "stopped" });
  }

  /** The device woke up, or a person does not want to wait. */
  nudge(): void {
    if (this.link.state === "waiting") {
      this.attempt = 0;
      this.dial();
    } else if (this.link.state === "open") {
      this.sendBeat();
      clearTimeout(this.silence);
      this.silence = setTimeout(() => this.lost(), WAKE_WITHIN_MS);
    }
  }

  /** Says something now. False when nobody can hear it. */
  say<T extends ClientFrame["type"]>(type: T, body: Body<T>): boolean {
    if (!this.isOpen || !this.socket) return false;
    this.socket.send(JSON.stringify({ type, protocol_version: PROTOCOL_VERSION, ...body }));
    return true;
  }

  /** Asks, and waits for the answer with the same id. */
  ask<T extends ClientFrame["type"]>(
    type: T,
    body: Body<T>,
    options: { request_id?: string; interim?: string } = {},
  ): Promise<RelayFrame> {
    const request_id = options.request_id ?? this.newId("r");
    return new Promise((resolve, reject) => {
      if (this.pending.size >= REQUESTS_MAX) {
        reject(new Refused("rate_limited", t.trouble.tooManyRequests));
        return;
      }
      const timer = setTimeout(() => {
        this.pending.delete(request_id);
        reject(new Refused("silent", t.trouble.silent));
      }, ANSWER_WITHIN_MS);
      this.pending.set(request_id, { resolve, reject, timer, interim: options.interim ?? null });
      if (!this.say(type, { ...body, request_id })) {
        this.settle(request_id)?.reject(new Refused("offline", t.trouble.offline));
      }
    });
  }

  newId(prefix: string): string {
    this.counter += 1;
    const chance = Math.floor(this.around.random() * 2 ** 40).toString(36);
    return `${prefix}_${this.around.now().toString(36)}_${this.counter}_${chance}`;
  }

  private dial(): void {
    clearTimeout(this.timer);
    this.tell({ state: "connecting", since_ms: this.offlineSince ?? this.around.now() });
    this.figures.sockets += 1;
    const socket = this.around.open();
    this.socket = socket;
    let opened = false;
    this.timer = setTimeout(() => this.lost(), OPEN_WITHIN_MS);
    socket.onopen = () => {
      opened = true;
      this.hello(socket);
    };
    socket.onmessage = (event) => {
      if (this.socket === socket) this.receive(event.data);
    };
    socket.onclose = ({ code }) => {
      if (this.socket !== socket) return;
      if (code === CLOSED_FORBIDDEN) this.refused();
      else if (opened) this.lost();
      else void this.neverOpened();
    };
  }

  private hello(socket: Socket): void {
    const sessions = this.listener.cursors();
    if (this.figures.sockets > 1 && sessions.length > 0) this.figures.resumed += 1;
    const hello = {
      type: "connection_hello",
      protocol_version: PROTOCOL_VERSION,
      peer_role: "browser",
      client_name: "farhelm-page",
      client_version: this.around.version,
      client_id: this.around.clientId,
      features: FEATURES,
      resume: { sessions },
    };
    socket.send(JSON.stringify(hello));
  }

  private receive(data: unknown): void {
    this.figures.frames += 1;
    this.figures.heard_at_ms = this.around.now();
    this.listen();
    const frame = parse(data);
    if (!frame) return;
    if (frame.type === "connection_ack") this.greet(frame);
    const { beat } = this;
    if (frame.type === "heartbeat_ack" && beat && beat.id === frame.request_id) {
      this.figures.latency_ms = this.around.now() - beat.at_ms;
      this.beat = null;
    }
    this.answer(frame);
    this.listener.heard(frame);
    if (frame.type === "session_snapshot") this.listener.greeted();
  }

  private greet(ack: Extract<RelayFrame, { type: "connection_ack" }>): void {
    clearTimeout(this.timer);
    this.attempt = 0;
    this.offlineSince = null;
    this.silence_ms = ack.heartbeat_timeout_ms || 30_000;
    clearInterval(this.beating);
    this.beating = setInterval(() => this.sendBeat(), ack.heartbeat_interval_ms || 10_000);
    this.listen();
    this.tell({ state: "open", since_ms: this.around.now() });
    this.sendBeat();
  }

  private sendBeat(): void {
    const id = this.newId("hb");
    this.beat = { id, at_ms: this.around.now() };
    this.say("heartbeat", { request_id: id });
  }

  /** Each frame is a sign of life; after long silence the socket is dead, whatever it says. */
  private listen(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.lost(), this.silence_ms);
  }

  private answer(frame: RelayFrame): void {
    const id = frame.request_id;
    const pending = id === undefined ? undefined : this.pending.get(id);
    if (id === undefined || !pending || frame.type === pending.interim) return;
    this.settle(id);
    if (frame.type === "connection_error") {
      pending.reject(new Refused(frame.code, frame.message));
    } else if (frame.type === "session_launch_failed") {
      pending.reject(new Refused(frame.error_code, frame.reason));
    } else if (frame.type === "agent_control_result" && frame.result === "failed") {
      const code = frame.error?.code ?? frame.error_code ?? "failed";
      pending.reject(new Refused(code, frame.error?.message ?? code));
    } else {
      pending.resolve(frame);
    }
  }

  private settle(id: string): Pending | undefined {
    const pending = this.pending.get(id);
    if (pending) clearTimeout(pending.timer);
    this.pending.delete(id);
    return pending;
  }

  private async neverOpened(): Promise<void> {
    const socket = this.socket;
    const found = await this.around.probe();
    if (this.socket !== socket) return;
    if (found === "unauthorized") this.refused();
    else this.lost();
  }

  private refused(): void {
    this.leave();
    this.tell({ state: "refused" });
  }

  private lost(): void {
    if (this.link.state === "open") this.figures.dropped += 1;
    this.leave();
    const now = this.around.now();
    this.offlineSince ??= now;
    const wait = waitMs(this.attempt, () => this.around.random());
    this.attempt += 1;
    this.tell({ state: "waiting", since_ms: this.offlineSince, retry_at_ms: now + wait });
    this.timer = setTimeout(() => this.dial(), wait);
  }

  /** Lets go of the socket and of everybody who waits for an answer from it. */
  private leave(): void {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    clearInterval(this.beating);
    const socket = this.socket;
    this.socket = null;
    if (socket) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    for (const id of [...this.pending.keys()]) {
      this.settle(id)?.reject(new Refused("offline", t.trouble.lost));
    }
  }

  private tell(link: Link): void {
    this.link = link;
    this.listener.linked(link);
  }
}

/** Reads a frame; what is none is ignored, as the relay never sends it. */
export function parse(data: unknown): RelayFrame | null {
  if (typeof data !== "string") return null;
  try {
    const frame: unknown = JSON.parse(data);
    const isFrame = typeof frame === "object" && frame !== null && "type" in frame;
    return isFrame && typeof frame.type === "string" ? (frame as RelayFrame) : null;
  } catch {
    return null;
  }
}
