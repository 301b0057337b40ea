// Sessions that are being started: on their way, failed in words, or there.
//
// Not here: what can be started where (the catalogue in the world).
import type { Connection } from "../connection/connection";
import { t } from "../text/en";
import type { LaunchSession, RelayFrame, ResumeSession } from "../wire/generated";

export type Wish =
  { what: "launch"; body: LaunchSession } | { what: "resume"; body: ResumeSession };

export type Launch = { id: string; wish: Wish | null; agent: string } & (
  | { state: "starting"; since_ms: number }
  | { state: "failed"; code: string; reason: string }
  | { state: "ready"; session: string }
);

/** Launches that are remembered; older ones are of no interest to anybody. */
const LAUNCHES_MAX = 20;

export class Launches {
  all = $state.raw<Launch[]>([]);

  constructor(private readonly connection: Connection) {}

  find(id: string | null): Launch | null {
    return this.all.find((it) => it.id === id) ?? null;
  }

  /** Starts it; the answer comes as a frame, also over a reconnect. */
  begin(wish: Wish): string {
    const id = this.connection.newId("l");
    this.put({ id, wish, agent: wish.body.agent_type, state: "starting", since_ms: Date.now() });
    const said =
      wish.what === "launch"
        ? this.connection.say("launch_session", { ...wish.body, request_id: id })
        : this.connection.say("resume_session", { ...wish.body, request_id: id });
    if (!said) this.fail(id, "offline", t.trouble.noRelay);
    return id;
  }

  forget(id: string): void {
    this.all = this.all.filter((it) => it.id !== id);
  }

  heard(frame: RelayFrame): void {
    switch (frame.type) {
      case "connection_ack":
        for (const pending of frame.pending_launches ?? []) {
          const since_ms = Date.parse(pending.launched_at);
          const wish = this.find(pending.request_id)?.wish ?? null;
          const { request_id: id, agent_type: agent } = pending;
          this.put({ id, wish, agent, state: "starting", since_ms });
        }
        return;
      case "session_launch_ack": {
        const known = this.find(frame.request_id ?? null);
        if (known && frame.session_id) {
          const { id, wish, agent } = known;
          this.put({ id, wish, agent, state: "ready", session: frame.session_id });
        }
        return;
      }
      case "session_launch_failed":
        if (frame.request_id) this.fail(frame.request_id, frame.error_code, frame.reason);
        return;
      case "connection_error":
        if (frame.request_id && this.find(frame.request_id)) {
          this.fail(frame.request_id, frame.code, frame.message);
        }
        return;
      default:
        return;
    }
  }

  private fail(id: string, code: string, reason: string): void {
    const known = this.find(id);
    if (!known) return;
    this.put({ id, wish: known.wish, agent: known.agent, state: "failed", code, reason });
  }

  private put(launch: Launch): void {
    const others = this.all.filter((it) => it.id !== launch.id);
    this.all = [...others, launch].slice(-LAUNCHES_MAX);
  }
}
