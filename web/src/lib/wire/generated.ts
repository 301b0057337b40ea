// Written by `cargo xtask codegen` from crates/wire. Do not edit.

export type Activity = { 
/**
 * `thinking`, `generating`, `reading_files`, `running_command`, `applying_patch`,
 * `waiting_for_user`, `idle`, or a word that is shown by its label.
 */
kind: string, 
/**
 * What people read.
 */
label?: string, 
/**
 * Since when.
 */
updated_at?: string, };
export type AgentConfig = { 
/**
 * The current model, or `unknown`.
 */
model_id: string, 
/**
 * How it asks for permission.
 */
permission_mode?: string, 
/**
 * Which files it may touch.
 */
file_access_scope?: string, 
/**
 * Models it can be switched to.
 */
available_models?: Array<string>, 
/**
 * Extension: permission modes it can be switched to.
 */
available_modes?: Array<string>, 
/**
 * Extension: how hard it thinks.
 */
effort?: string, 
/**
 * Extension: efforts it can be switched to.
 */
available_efforts?: Array<string>, 
/**
 * Extension: words after a slash that it understands.
 */
commands?: { name: string, description?: string }[], 
/**
 * Extension: the agent's own record of the session.
 */
session_file?: string, 
/**
 * What the proxy can do with this agent.
 */
capabilities?: { [key in string]: boolean }, 
/**
 * When it was read.
 */
read_at?: string, };
export type AgentControlResult = { 
/**
 * The type of the command.
 */
command: string, 
/**
 * Whether it was carried out.
 */
result: ResultWord, 
/**
 * Why not.
 */
error?: ErrorBody, 
/**
 * Why not, once more: readers look in either place.
 */
error_code?: string, };
export type AgentEntry = { 
/**
 * Which agent.
 */
agent_type: string, 
/**
 * What people call it.
 */
display_name?: string, 
/**
 * Whether its program is there.
 */
installed: boolean, 
/**
 * As the program says.
 */
version?: string, 
/**
 * Whether a credential was seen, unused; absent where that cannot be seen.
 */
logged_in?: boolean, 
/**
 * How a person gets it.
 */
install?: string, 
/**
 * Models that a session of it named; absent where none did.
 */
models?: Array<string>, 
/**
 * Permission modes, likewise.
 */
modes?: Array<string>, };
export type AgentSetEffort = { 
/**
 * How hard.
 */
effort: string, };
export type AgentSetModel = { 
/**
 * Which.
 */
model_id: string, };
export type AgentSetPermissionMode = { 
/**
 * Which.
 */
mode: string, };
export type Attachment = { 
/**
 * From the upload.
 */
attachment_id: string, 
/**
 * As the file was called.
 */
name: string, 
/**
 * The client's own word for it, as in `uploaded_file`.
 */
kind: string, 
/**
 * From the upload.
 */
media_type?: string, };
export type AuthorWord = "user" | "assistant" | "system";
export type Catalog = { 
/**
 * Those that are connected first, then by name.
 */
machines: Array<MachineEntry>, };
export type ChangeWord = "removed" | "edited" | "moved" | "held" | "resumed";
export type Choice = { 
/**
 * What an answer names.
 */
choice_id: string, 
/**
 * What a person reads.
 */
label: string, 
/**
 * Whether the agent's own UI marks it.
 */
is_default: boolean, 
/**
 * Extension: what it does.
 */
effect?: EffectWord, };
export type CloseReasonWord = "user_requested" | "target_closed" | "proxy_shutdown";
export type ConnectionAck = { 
/**
 * How often to send a heartbeat.
 */
heartbeat_interval_ms: number, 
/**
 * After how long without a frame the connection counts as stale.
 */
heartbeat_timeout_ms: number, 
/**
 * The newest configuration of each session.
 */
session_configs?: { [key in string]: AgentConfig }, 
/**
 * Every question that waits.
 */
open_prompts?: Array<OpenPrompt>, 
/**
 * The client's own launches that are on their way.
 */
pending_launches?: Array<PendingLaunch>, 
/**
 * Extension: what the peer named and the relay speaks.
 */
features?: Array<string>, };
export type ConnectionError = { 
/**
 * A stable code.
 */
code: string, 
/**
 * For people.
 */
message: string, 
/**
 * The send that it is about.
 */
client_message_id?: string, };
export type ConnectionHello = { 
/**
 * Which end it is.
 */
peer_role: PeerRole, 
/**
 * What program it is.
 */
client_name: string, 
/**
 * Which version of it.
 */
client_version?: string, 
/**
 * Extension: the client's own lasting id.
 */
client_id?: string, 
/**
 * A proxy's machine.
 */
machine_label?: string, 
/**
 * Extension: what else it speaks.
 */
features?: Array<string>, 
/**
 * What it saw before.
 */
resume?: Resume, };
export type ContextUsage = { 
/**
 * Tokens in it.
 */
used_tokens: number, 
/**
 * Tokens that fit.
 */
window_tokens: number, };
export type Conversation = { 
/**
 * Which agent.
 */
agent_type: string, 
/**
 * As the agent names it.
 */
conversation_id: string, 
/**
 * One line for people.
 */
title?: string, 
/**
 * Where it was held.
 */
workspace_path?: string, 
/**
 * When it was last added to.
 */
updated_at: string, 
/**
 * The session that goes on with it already.
 */
session_id?: string, };
export type Diff = { 
/**
 * As the agent names it.
 */
path: string, 
/**
 * Absent for a new file.
 */
old_text?: string, 
/**
 * Absent for a deleted file.
 */
new_text?: string, };
export type DownReasonWord = "proxy_disconnected" | "target_gone";
export type EffectWord = "allow_once" | "allow_always" | "reject";
export type Envelope = { 
/**
 * What the frame is.
 */
type: string, 
/**
 * [`VERSION`]; `None` where the frame has none or not a whole number.
 */
protocol_version?: number, 
/**
 * Names one recorded event.
 */
event_id?: string, 
/**
 * Its place in its session.
 */
sequence?: number, 
/**
 * Chosen by a requester, repeated by the answer.
 */
request_id?: string, 
/**
 * Names one socket.
 */
connection_id?: string, 
/**
 * The session that it concerns.
 */
session_id?: string, 
/**
 * The relay's clock.
 */
server_ts?: string, };
export type ErrorBody = { 
/**
 * A stable code.
 */
code: string, 
/**
 * Words for people.
 */
message: string, };
export type HealthWord = "healthy" | "degraded" | "disconnected" | "scraping_failed" | "agent_ui_changed";
export type Heartbeat = { 
/**
 * The peer's own clock.
 */
client_ts?: string, };
export type HistoryDelta = { 
/**
 * After this one.
 */
from_sequence: number, 
/**
 * How far it reaches.
 */
last_sequence: number, 
/**
 * Each a frame of its own; see [`super::RelayFrame::parse`].
 */
events: unknown[], 
/**
 * Extension (feature `paging`): whether another one follows.
 */
has_more?: boolean, };
export type HistoryRequest = { 
/**
 * Without it, everything.
 */
after_sequence?: number, };
export type HistorySnapshot = { 
/**
 * How far it reaches.
 */
last_sequence: number, 
/**
 * In order.
 */
messages: Array<Message>, 
/**
 * Extension (feature `paging`): whether `history_delta` frames with the rest follow.
 */
has_more?: boolean, };
export type LaunchSession = { 
/**
 * Which agent.
 */
agent_type: string, 
/**
 * In which folder.
 */
workspace_path?: string, 
/**
 * A hint for its name.
 */
window_title?: string, 
/**
 * Extension: on which machine.
 */
machine_label?: string, 
/**
 * Extension: with which model.
 */
model_id?: string, 
/**
 * Extension: in which permission mode.
 */
permission_mode?: string, 
/**
 * Extension: whether it gets a git working tree of its own.
 */
worktree?: boolean, 
/**
 * Extension: for the agent's program.
 */
arguments?: Array<string>, };
export type LimitsEntry = { 
/**
 * Programs that run at once.
 */
agents_max?: number, 
/**
 * A program that had nothing to do for so long is ended until it is needed.
 */
idle_stop_ms?: number, 
/**
 * Memory of one program and all that it started.
 */
memory_bytes_max?: number, };
export type Location = { 
/**
 * As the agent names it.
 */
path: string, 
/**
 * From 1.
 */
line?: number, };
export type MachineEntry = { 
/**
 * What people call it.
 */
machine_label: string, 
/**
 * Whether its proxy is there.
 */
connected: boolean, 
/**
 * Its agents; absent where it does not say.
 */
agents?: Array<AgentEntry>, 
/**
 * Folders: those that are offered, then those that sessions used, newest first.
 */
workspaces: Array<string>, 
/**
 * How much its agents may take; absent where it does not say.
 */
limits?: LimitsEntry, };
export type Message = { 
/**
 * Absent where a proxy has no id for it.
 */
message_id?: string, 
/**
 * Whose words.
 */
role: AuthorWord, 
/**
 * The text of it.
 */
content: string, 
/**
 * When it was written.
 */
created_at?: string, 
/**
 * Extension: all of it. Absent where the text is all.
 */
parts?: Array<Part>, 
/**
 * Extension: stands in place of content and parts.
 */
sealed?: Sealed, 
/**
 * Extension: the run it belongs to.
 */
run_id?: string, 
/**
 * Extension: the tool call whose subagent wrote it.
 */
parent_tool_call_id?: string, };
export type MessageAccepted = { 
/**
 * The same as `client_message_id`.
 */
message_id: string, 
/**
 * Which send.
 */
client_message_id: string, 
/**
 * `accepted`.
 */
status: StatusWord, 
/**
 * When.
 */
accepted_at: string, 
/**
 * Extension: the words.
 */
content?: string, 
/**
 * Extension: its files.
 */
attachments?: Array<Attachment>, 
/**
 * Extension: what it does while the agent runs.
 */
mode?: ModeWord, 
/**
 * Extension: who sent it.
 */
sent_by?: string, 
/**
 * Extension: stands in place of the words.
 */
sealed?: Sealed, };
export type MessageDelivered = { 
/**
 * The same as `client_message_id`.
 */
message_id: string, 
/**
 * Which send.
 */
client_message_id: string, 
/**
 * `delivered`.
 */
status: StatusWord, 
/**
 * When.
 */
delivered_at: string, 
/**
 * Extension: the run that it started.
 */
run_id?: string, };
export type MessageDelta = { 
/**
 * The message in the making.
 */
message_id: string, 
/**
 * Which of its parts, from 0.
 */
part: number, 
/**
 * In which voice.
 */
kind: VoiceWord, 
/**
 * Where the words begin, in UTF-16 units.
 */
offset: number, 
/**
 * The words.
 */
content?: string, 
/**
 * Stands in place of the words.
 */
sealed?: Sealed, 
/**
 * From the relay: the newest recorded event that it follows.
 */
after_sequence?: number, };
export type MessageEvent = { 
/**
 * What.
 */
message: Message, };
export type MessageFailed = { 
/**
 * The same as `client_message_id`.
 */
message_id: string, 
/**
 * Which send.
 */
client_message_id: string, 
/**
 * `failed`.
 */
status: StatusWord, 
/**
 * When.
 */
failed_at: string, 
/**
 * Why.
 */
error: ErrorBody, };
export type ModeWord = "steer" | "follow_up";
export type Notice = { 
/**
 * A stable word: `rate_limit`, `compaction`, `error`, …
 */
kind: string, 
/**
 * For a person.
 */
text: string, };
export type OpenPrompt = { 
/**
 * Whose question.
 */
session_id: string, 
/**
 * Belongs to one dialog as long as it is open.
 */
prompt_id: string, 
/**
 * As the agent words it.
 */
prompt_text: string, 
/**
 * At least one.
 */
choices: Array<Choice>, 
/**
 * How long the dialog waits.
 */
timeout_ms?: number, 
/**
 * In `open_prompts`: when its time is up.
 */
expires_at?: string, 
/**
 * What is chosen when nobody answers.
 */
default_choice?: string, 
/**
 * When the dialog appeared.
 */
detected_at?: string, 
/**
 * Extension: the run that is blocked.
 */
run_id?: string, 
/**
 * Extension: stands in place of the text.
 */
sealed?: Sealed, 
/**
 * Extension: the tool that wants to run.
 */
tool?: string, 
/**
 * Extension: the call that waits.
 */
tool_call_id?: string, 
/**
 * Extension: its input.
 */
input?: unknown, 
/**
 * Extension: what would change.
 */
diffs?: Array<Diff>, 
/**
 * Extension: the agent's own "always allow" rules.
 */
suggestions?: unknown, 
/**
 * Extension: questions with options.
 */
questions?: unknown, 
/**
 * Extension: stands in place of tool, input, diffs, suggestions and questions.
 */
sealed_detail?: Sealed, 
/**
 * Extension: why an answer could not be applied, when the prompt opened again.
 */
error?: ErrorBody, };
export type Others = "all" | "cards";
export type OutcomeWord = "completed" | "interrupted" | "failed";
export type Part = { "kind": "text", 
/**
 * The words.
 */
text: string, } | { "kind": "thinking", 
/**
 * The words.
 */
text: string, } | { "kind": "image", 
/**
 * From the upload.
 */
attachment_id: string, 
/**
 * As the file was called.
 */
name: string, 
/**
 * From the upload.
 */
media_type?: string, } | { "kind": "file", 
/**
 * From the upload.
 */
attachment_id: string, 
/**
 * As the file was called.
 */
name: string, 
/**
 * From the upload.
 */
media_type?: string, } | { "kind": "tool_call", 
/**
 * Which.
 */
tool_call_id: string, };
export type PeerRole = "browser" | "proxy";
export type PendingLaunch = { 
/**
 * The client's id for it.
 */
request_id: string, 
/**
 * Which agent.
 */
agent_type: string, 
/**
 * Since when.
 */
launched_at: string, 
/**
 * Until when.
 */
timeout_at: string, };
export type PermissionPromptExpired = { 
/**
 * Which prompt.
 */
prompt_id: string, 
/**
 * The button, if any was pressed.
 */
applied_choice?: string, };
export type PermissionPromptResolved = { 
/**
 * Which prompt.
 */
prompt_id: string, 
/**
 * The button.
 */
choice_id?: string, 
/**
 * Who, by the name of their credential.
 */
answered_by: string, };
export type PermissionResponse = { 
/**
 * Which prompt.
 */
prompt_id: string, 
/**
 * Which button. Absent only towards a proxy: nothing is pressed.
 */
choice_id?: string, 
/**
 * Towards a proxy: the clock chose.
 */
auto_applied?: boolean, 
/**
 * Extension (feature `prompt_detail`): the input to use instead.
 */
updated_input?: unknown, 
/**
 * Extension: words for the agent.
 */
message?: string, 
/**
 * Extension: answers to its questions.
 */
answers?: unknown, 
/**
 * Extension: whether the run ends with it.
 */
stop?: boolean, 
/**
 * Extension: stands in place of the other extensions.
 */
sealed?: Sealed, };
export type Plan = { 
/**
 * In order.
 */
entries: Array<PlanEntry>, 
/**
 * Stands in place of the entries.
 */
sealed?: Sealed, };
export type PlanEntry = { 
/**
 * What is to be done.
 */
text: string, 
/**
 * How far it is.
 */
status: PlanStatusWord, };
export type PlanStatusWord = "pending" | "in_progress" | "completed";
export type Prompt = { 
/**
 * Belongs to one dialog as long as it is open.
 */
prompt_id: string, 
/**
 * As the agent words it.
 */
prompt_text: string, 
/**
 * At least one.
 */
choices: Array<Choice>, 
/**
 * How long the dialog waits.
 */
timeout_ms?: number, 
/**
 * In `open_prompts`: when its time is up.
 */
expires_at?: string, 
/**
 * What is chosen when nobody answers.
 */
default_choice?: string, 
/**
 * When the dialog appeared.
 */
detected_at?: string, 
/**
 * Extension: the run that is blocked.
 */
run_id?: string, 
/**
 * Extension: stands in place of the text.
 */
sealed?: Sealed, 
/**
 * Extension: the tool that wants to run.
 */
tool?: string, 
/**
 * Extension: the call that waits.
 */
tool_call_id?: string, 
/**
 * Extension: its input.
 */
input?: unknown, 
/**
 * Extension: what would change.
 */
diffs?: Array<Diff>, 
/**
 * Extension: the agent's own "always allow" rules.
 */
suggestions?: unknown, 
/**
 * Extension: questions with options.
 */
questions?: unknown, 
/**
 * Extension: stands in place of tool, input, diffs, suggestions and questions.
 */
sealed_detail?: Sealed, 
/**
 * Extension: why an answer could not be applied, when the prompt opened again.
 */
error?: ErrorBody, };
export type QueueDiscard = { 
/**
 * Which message.
 */
client_message_id: string, };
export type QueueEdit = { 
/**
 * Which message.
 */
client_message_id: string, 
/**
 * Its new words.
 */
content?: string, 
/**
 * Stands in place of the words.
 */
sealed?: Sealed, };
export type QueueMove = { 
/**
 * Which message.
 */
client_message_id: string, 
/**
 * From 0.
 */
position: number, };
export type QueueUpdate = { 
/**
 * What happened.
 */
change: ChangeWord, 
/**
 * To which message.
 */
client_message_id?: string, 
/**
 * Its words.
 */
content?: string, 
/**
 * Stands in place of the words.
 */
sealed?: Sealed, 
/**
 * Its new place, from 0.
 */
position?: number, };
export type ResultWord = "ok" | "failed";
export type ResumableListRequest = { 
/**
 * On which machine; absent: the one that was active last.
 */
machine_label?: string, 
/**
 * Of which agent; absent: of all.
 */
agent_type?: string, 
/**
 * At most so many.
 */
limit?: number, 
/**
 * After so many of the newest.
 */
after?: number, };
export type ResumableSessions = { 
/**
 * Which machine.
 */
machine_label: string, 
/**
 * A page of them.
 */
conversations: Array<Conversation>, 
/**
 * Where the next page begins, if there is one.
 */
next?: number, };
export type Resume = { 
/**
 * Each with the last event that it saw.
 */
sessions: Array<ResumeAt>, };
export type ResumeAt = { 
/**
 * Which session.
 */
session_id: string, 
/**
 * Its last event that was seen.
 */
last_sequence: number, };
export type ResumeSession = { 
/**
 * Which agent.
 */
agent_type: string, 
/**
 * As the agent names the conversation.
 */
conversation_id: string, 
/**
 * On which machine.
 */
machine_label?: string, 
/**
 * In which folder, in place of its own.
 */
workspace_path?: string, 
/**
 * Whether to go on in a copy.
 */
fork?: boolean, 
/**
 * With which model.
 */
model_id?: string, 
/**
 * In which permission mode.
 */
permission_mode?: string, };
export type RunEnded = { 
/**
 * Which run.
 */
run_id: string, 
/**
 * How.
 */
outcome: OutcomeWord, 
/**
 * Why it failed, or was cut off.
 */
reason?: string, 
/**
 * How long a run that was cut off had gone on: its end is told much later.
 */
lasted_ms?: number, 
/**
 * What it took.
 */
usage?: Usage, };
export type RunStarted = { 
/**
 * Which run.
 */
run_id: string, 
/**
 * The send that it answers.
 */
cause?: string, };
export type Sealed = { 
/**
 * Which key.
 */
key: string, 
/**
 * Base64.
 */
nonce: string, 
/**
 * Base64.
 */
body: string, };
export type SendMessage = { 
/**
 * Made by the client; a retry carries the same.
 */
client_message_id: string, 
/**
 * The words.
 */
content?: string, 
/**
 * Uploaded files.
 */
attachments?: Array<Attachment>, 
/**
 * As the client says.
 */
created_at: string, 
/**
 * Extension (feature `queue`): what to do while the agent runs.
 */
mode?: ModeWord, 
/**
 * Extension: stands in place of the words.
 */
sealed?: Sealed, };
export type Session = { 
/**
 * Absent where a proxy knows only a signature.
 */
session_id?: string, 
/**
 * The agent's name, free.
 */
agent_type: string, 
/**
 * What people call it.
 */
display_name?: string, 
/**
 * The title of its window.
 */
window_title?: string, 
/**
 * The workspace's name.
 */
workspace_name?: string, 
/**
 * The workspace's folder.
 */
workspace_path?: string, 
/**
 * Its machine.
 */
machine_label?: string, 
/**
 * Recognises its target after a restart.
 */
target_signature?: string, 
/**
 * The proxy's own passing name for its target.
 */
target_id?: string, 
/**
 * When anything was last heard of it.
 */
last_seen_at?: string, 
/**
 * How it is.
 */
status: HealthWord, 
/**
 * What its agent is doing.
 */
activity?: Activity, 
/**
 * Extension: why its status is as it is, in words for a person.
 */
status_reason?: string, 
/**
 * Extension: a person's name for it.
 */
title?: string, 
/**
 * Extension: whether a person put it away.
 */
archived?: boolean, 
/**
 * Extension: its last event.
 */
last_sequence?: number, 
/**
 * Extension: the run that is going on.
 */
run_id?: string, };
export type SessionArchived = { 
/**
 * Whether it is put away now.
 */
archived: boolean, };
export type SessionClosed = { 
/**
 * Why.
 */
reason?: CloseReasonWord, };
export type SessionDown = { 
/**
 * Why.
 */
reason: DownReasonWord, };
export type SessionLaunchAck = { 
/**
 * Which agent.
 */
agent_type?: string, };
export type SessionLaunchFailed = { 
/**
 * Which agent.
 */
agent_type?: string, 
/**
 * For a person.
 */
reason: string, 
/**
 * A stable code.
 */
error_code: string, };
export type SessionLaunching = { 
/**
 * Which agent.
 */
agent_type: string, };
export type SessionRename = { 
/**
 * Its new name.
 */
title: string, };
export type SessionRenamed = { 
/**
 * Its new name.
 */
title: string, };
export type SessionSnapshot = { 
/**
 * Each described in full.
 */
sessions: Array<Session>, };
export type SessionStatus = { 
/**
 * How it is.
 */
status: HealthWord, 
/**
 * What its agent is doing.
 */
activity?: Activity, 
/**
 * Extension: why, in words for a person.
 */
reason?: string, };
export type SessionUp = { 
/**
 * As its proxy described it.
 */
session: Session, };
export type StatusWord = "accepted" | "delivered" | "failed";
export type ToolCall = { 
/**
 * As the agent names the call.
 */
tool_call_id: string, 
/**
 * The agent's name of the tool.
 */
tool: string, 
/**
 * What sort of thing it does.
 */
kind: ToolKindWord, 
/**
 * How far it is.
 */
status: ToolStatusWord, 
/**
 * One line for people.
 */
title?: string, 
/**
 * The tool's input.
 */
input?: unknown, 
/**
 * What it printed or returned so far: whole, or to clients its head and tail.
 */
output?: string, 
/**
 * Whether something in the middle of the output was left out.
 */
output_truncated?: boolean, 
/**
 * Bytes of the whole output, where something was left out.
 */
output_bytes?: number, 
/**
 * File changes.
 */
diffs?: Array<Diff>, 
/**
 * Files it touches.
 */
locations?: Array<Location>, 
/**
 * Stands in place of title, input, output, diffs and locations.
 */
sealed?: Sealed, 
/**
 * The run it belongs to.
 */
run_id?: string, 
/**
 * The tool call whose subagent made this one.
 */
parent_tool_call_id?: string, };
export type ToolKindWord = "read" | "edit" | "execute" | "search" | "fetch" | "other";
export type ToolOutput = { 
/**
 * Which call.
 */
tool_call_id: string, 
/**
 * The byte that it begins with.
 */
offset: number, 
/**
 * Its words.
 */
content: string, 
/**
 * Bytes of the whole.
 */
total_bytes: number, 
/**
 * Where the next stretch begins, if there is one.
 */
next_offset?: number, };
export type ToolOutputRequest = { 
/**
 * Which call.
 */
tool_call_id: string, 
/**
 * The event that told a part of it; without it, the last that told any.
 */
at_sequence?: number, 
/**
 * From this byte on.
 */
offset?: number, 
/**
 * At most so many bytes.
 */
limit?: number, };
export type ToolStatusWord = "pending" | "running" | "completed" | "failed" | "cancelled";
export type ToolUpdate = { 
/**
 * Which call.
 */
tool_call_id: string, 
/**
 * How far it is now.
 */
status: ToolStatusWord, 
/**
 * One line for people.
 */
title?: string, 
/**
 * The tool's input.
 */
input?: unknown, 
/**
 * What it printed or returned so far: whole, or to clients its head and tail.
 */
output?: string, 
/**
 * Whether something in the middle of the output was left out.
 */
output_truncated?: boolean, 
/**
 * Bytes of the whole output, where something was left out.
 */
output_bytes?: number, 
/**
 * File changes.
 */
diffs?: Array<Diff>, 
/**
 * Files it touches.
 */
locations?: Array<Location>, 
/**
 * Stands in place of title, input, output, diffs and locations.
 */
sealed?: Sealed, };
export type Usage = { 
/**
 * Read by the model.
 */
input_tokens?: number, 
/**
 * Written by the model.
 */
output_tokens?: number, 
/**
 * Of the input, read from a cache.
 */
cached_tokens?: number, 
/**
 * US dollars, as the agent reckons it.
 */
cost_usd?: number, };
export type VoiceWord = "text" | "thinking";
export type Watch = { 
/**
 * Which ones.
 */
sessions: Array<string>, 
/**
 * The recorded events of the others. Absent: all.
 */
others?: Others, };

export type ClientFrame =
  | (Envelope & { type: "connection_hello" } & ConnectionHello)
  | (Envelope & { type: "heartbeat" } & Heartbeat)
  | (Envelope & { type: "send_message" } & SendMessage)
  | (Envelope & { type: "history_request" } & HistoryRequest)
  | (Envelope & { type: "launch_session" } & LaunchSession)
  | (Envelope & { type: "resume_session" } & ResumeSession)
  | (Envelope & { type: "catalog_request" })
  | (Envelope & { type: "resumable_list" } & ResumableListRequest)
  | (Envelope & { type: "tool_output_request" } & ToolOutputRequest)
  | (Envelope & { type: "close_session" })
  | (Envelope & { type: "permission_response" } & PermissionResponse)
  | (Envelope & { type: "agent_interrupt" })
  | (Envelope & { type: "agent_config_request" })
  | (Envelope & { type: "agent_set_model" } & AgentSetModel)
  | (Envelope & { type: "agent_set_permission_mode" } & AgentSetPermissionMode)
  | (Envelope & { type: "agent_set_effort" } & AgentSetEffort)
  | (Envelope & { type: "session_rename" } & SessionRename)
  | (Envelope & { type: "watch" } & Watch)
  | (Envelope & { type: "queue_edit" } & QueueEdit)
  | (Envelope & { type: "queue_discard" } & QueueDiscard)
  | (Envelope & { type: "queue_move" } & QueueMove)
  | (Envelope & { type: "queue_resume" });

export type RelayFrame =
  | (Envelope & { type: "connection_ack" } & ConnectionAck)
  | (Envelope & { type: "connection_error" } & ConnectionError)
  | (Envelope & { type: "heartbeat_ack" })
  | (Envelope & { type: "session_snapshot" } & SessionSnapshot)
  | (Envelope & { type: "session_up" } & SessionUp)
  | (Envelope & { type: "session_down" } & SessionDown)
  | (Envelope & { type: "session_status" } & SessionStatus)
  | (Envelope & { type: "session_closed" } & SessionClosed)
  | (Envelope & { type: "session_renamed" } & SessionRenamed)
  | (Envelope & { type: "session_archived" } & SessionArchived)
  | (Envelope & { type: "message_accepted" } & MessageAccepted)
  | (Envelope & { type: "message_delivered" } & MessageDelivered)
  | (Envelope & { type: "message_failed" } & MessageFailed)
  | (Envelope & { type: "message_event" } & MessageEvent)
  | (Envelope & { type: "message_delta" } & MessageDelta)
  | (Envelope & { type: "history_snapshot" } & HistorySnapshot)
  | (Envelope & { type: "history_delta" } & HistoryDelta)
  | (Envelope & { type: "session_launching" } & SessionLaunching)
  | (Envelope & { type: "session_launch_ack" } & SessionLaunchAck)
  | (Envelope & { type: "session_launch_failed" } & SessionLaunchFailed)
  | (Envelope & { type: "catalog" } & Catalog)
  | (Envelope & { type: "resumable_sessions" } & ResumableSessions)
  | (Envelope & { type: "tool_output" } & ToolOutput)
  | (Envelope & { type: "permission_prompt" } & Prompt)
  | (Envelope & { type: "permission_prompt_expired" } & PermissionPromptExpired)
  | (Envelope & { type: "permission_prompt_resolved" } & PermissionPromptResolved)
  | (Envelope & { type: "agent_config" } & AgentConfig)
  | (Envelope & { type: "agent_control_result" } & AgentControlResult)
  | (Envelope & { type: "tool_call" } & ToolCall)
  | (Envelope & { type: "tool_update" } & ToolUpdate)
  | (Envelope & { type: "run_started" } & RunStarted)
  | (Envelope & { type: "run_ended" } & RunEnded)
  | (Envelope & { type: "queue_update" } & QueueUpdate)
  | (Envelope & { type: "plan" } & Plan)
  | (Envelope & { type: "notice" } & Notice)
  | (Envelope & { type: "context_usage" } & ContextUsage);
