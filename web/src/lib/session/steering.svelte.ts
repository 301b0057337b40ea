// What a person does to sessions: write, answer, stop, set, rename, close, delete.
//
// Invariant: nothing here changes what is known of a session; that comes back from the relay.
// Not here: how words wait until they are taken (connection/outbox.ts).
import { Refused, type Connection } from "../connection/connection";
import { api, Failed } from "../connection/http";
import { Outbox, type Outgoing } from "../connection/outbox";
import type { Shelf } from "../connection/shelf";
import { t } from "../text/en";
import type { Attachment, ModeWord, PermissionResponse } from "../wire/generated";
import type { Send } from "./state";

interface Needs {
  /** Says that something did not work. */
  complain: (words: string) => void;
  /** A session was deleted. */
  forget: (session: string) => Promise<void>;
}

export class Steering {
  /** What is not with the relay yet. */
  unsent = $state.raw<Outgoing[]>([]);
  /** Sessions whose run a person asked to stop, until it is confirmed. */
  stopping = $state.raw<ReadonlySet<string>>(new Set());
  /** Prompts whose answer is on its way. */
  answering = $state.raw<ReadonlySet<string>>(new Set());
  readonly outbox: Outbox;

  constructor(
    private readonly connection: Connection,
    shelf: Shelf,
    private readonly needs: Needs,
  ) {
    this.outbox = new Outbox(
      shelf,
      () => connection,
      (waiting) => (this.unsent = waiting),
    );
  }

  send(session: string, text: string, attachments: Attachment[], mode: ModeWord | null): void {
    const id = this.connection.newId("m");
    const created_at = new Date().toISOString();
    const unsent = { id, session_id: session, text, attachments, mode, created_at };
    void this.outbox.send(unsent).then((taken) => {
      if (!taken) this.needs.complain(t.trouble.tooManyUnsent);
    });
  }

  /** Again, under the same id; after an unknown delivery only a new id may try. */
  retrySend(
    session: string,
    failed: Pick<Send, "id" | "text" | "attachments" | "mode">,
    code: string,
  ): void {
    if (this.unsent.some((it) => it.id === failed.id)) return this.outbox.retry(failed.id);
    const { text, attachments, mode } = failed;
    const id = code === "delivery_unknown" ? this.connection.newId("m") : failed.id;
    const created_at = new Date().toISOString();
    void this.outbox.send({ id, session_id: session, text, attachments, mode, created_at });
  }

  dropSend(id: string): void {
    void this.outbox.drop(id);
  }

  async answer(response: PermissionResponse & { session_id: string }): Promise<void> {
    const id = response.prompt_id;
    if (this.answering.has(id)) return;
    this.answering = new Set(this.answering).add(id);
    try {
      await this.connection.ask("permission_response", response);
    } catch (error) {
      if (error instanceof Refused && error.code === "prompt_not_found") {
        this.needs.complain(t.trouble.settledElsewhere);
      } else this.complainOf(error);
    } finally {
      const rest = new Set(this.answering);
      rest.delete(id);
      this.answering = rest;
    }
  }

  async stop(session: string): Promise<void> {
    if (this.stopping.has(session)) return;
    this.stopping = new Set(this.stopping).add(session);
    try {
      await this.connection.ask("agent_interrupt", { session_id: session });
    } catch (error) {
      // The run ended by itself: what was wanted is so.
      if (!(error instanceof Refused && error.code === "agent_not_active")) this.complainOf(error);
    } finally {
      const rest = new Set(this.stopping);
      rest.delete(session);
      this.stopping = rest;
    }
  }

  /** Some agents tell what can be chosen only when they are asked. */
  readConfig = (session_id: string) =>
    this.attempt(this.connection.ask("agent_config_request", { session_id }));
  setModel = (session_id: string, model_id: string) =>
    this.attempt(this.connection.ask("agent_set_model", { session_id, model_id }));
  setMode = (session_id: string, mode: string) =>
    this.attempt(this.connection.ask("agent_set_permission_mode", { session_id, mode }));
  setEffort = (session_id: string, effort: string) =>
    this.attempt(this.connection.ask("agent_set_effort", { session_id, effort }));
  close = (session_id: string) =>
    this.attempt(this.connection.ask("close_session", { session_id }));
  archive = (session_id: string, archived: boolean) =>
    this.attempt(api.archive(session_id, archived));

  async erase(session: string): Promise<boolean> {
    if (!(await this.attempt(this.eraseClosed(session)))) return false;
    await this.needs.forget(session);
    return true;
  }

  /** What runs is ended first: a machine would bring it back. */
  private async eraseClosed(session_id: string): Promise<void> {
    try {
      await api.erase(session_id);
    } catch (error) {
      if (!(error instanceof Failed && error.code === "session_connected")) throw error;
      await this.connection.ask("close_session", { session_id });
      await api.erase(session_id);
    }
  }

  rename(session_id: string, title: string): void {
    this.command(() => this.connection.say("session_rename", { session_id, title }));
  }

  queueEdit(session_id: string, client_message_id: string, content: string): void {
    const edit = { session_id, client_message_id, content };
    this.command(() => this.connection.say("queue_edit", edit));
  }

  queueDiscard(session_id: string, client_message_id: string): void {
    this.command(() => this.connection.say("queue_discard", { session_id, client_message_id }));
  }

  queueMove(session_id: string, client_message_id: string, position: number): void {
    const move = { session_id, client_message_id, position };
    this.command(() => this.connection.say("queue_move", move));
  }

  queueResume(session_id: string): void {
    this.command(() => this.connection.say("queue_resume", { session_id }));
  }

  private command(say: () => boolean): void {
    if (!say()) this.needs.complain(t.trouble.offline);
  }

  private async attempt(work: Promise<unknown>): Promise<boolean> {
    try {
      await work;
      return true;
    } catch (error) {
      this.complainOf(error);
      return false;
    }
  }

  private complainOf(error: unknown): void {
    this.needs.complain(error instanceof Error ? error.message : String(error));
  }
}
