// A machine whose agent is the test: it says whatever the journey needs, also what no good agent
// would say.
import WebSocket from "ws";
import type { Relay } from "./stage";

type Frame = Record<string, unknown> & { type: string };

export const FEATURES = [
  "deltas",
  "tools",
  "runs",
  "queue",
  "prompt_detail",
  "modes",
  "context",
  "plan",
];

export class Machine {
  private socket!: WebSocket;
  private readonly heard: Frame[] = [];
  private readonly waiting: { fits: (frame: Frame) => boolean; done: (frame: Frame) => void }[] =
    [];

  constructor(
    private readonly relay: Relay,
    readonly label: string,
  ) {}

  async connect(sessions: object[], hello: object = {}): Promise<void> {
    const url = `${this.relay.ready.ws.replace(/\/ws$/, "/ws/proxy")}?token=${this.relay.ready.proxy_token}`;
    this.socket = new WebSocket(url);
    this.socket.on("message", (data: Buffer) => this.receive(JSON.parse(data.toString()) as Frame));
    await new Promise((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("error", reject);
    });
    this.say({
      type: "connection_hello",
      peer_role: "proxy",
      client_name: "journey",
      machine_label: this.label,
      features: FEATURES,
      ...hello,
    });
    await this.hears((frame) => frame.type === "connection_ack");
    this.say({ type: "proxy_session_snapshot", sessions });
  }

  say(frame: Frame): void {
    this.socket.send(JSON.stringify({ protocol_version: 1, ...frame }));
  }

  message(session_id: string, message_id: string, content: string, more: object = {}): void {
    const message = { message_id, role: "assistant", content, created_at: now(), ...more };
    this.say({ type: "proxy_message", session_id, message });
  }

  /** The next frame that fits, or one that came before. */
  hears(fits: (frame: Frame) => boolean): Promise<Frame> {
    const at = this.heard.findIndex(fits);
    if (at >= 0) return Promise.resolve(this.heard.splice(at, 1)[0]!);
    return new Promise((done) => this.waiting.push({ fits, done }));
  }

  close(): void {
    this.socket.close();
  }

  private receive(frame: Frame): void {
    const at = this.waiting.findIndex((it) => it.fits(frame));
    if (at >= 0) this.waiting.splice(at, 1)[0]!.done(frame);
    else this.heard.push(frame);
  }
}

export const now = () => new Date().toISOString();
