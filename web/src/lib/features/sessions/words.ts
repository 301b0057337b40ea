// A session in words: what it is called, what it is doing.
import type { Card } from "../../session/state";
import { t } from "../../text/en";
import { leaf } from "../../text/format";
import { oneLine } from "../../text/plain";

const NAMES: Record<string, string> = {
  claude: "Claude",
  codex: "Codex",
  gemini: "Gemini",
  opencode: "OpenCode",
  pi: "pi",
  demo: "Demo",
};

export function agentName(card: Card): string {
  const { agent_type, display_name } = card.session;
  return oneLine(display_name ?? NAMES[agent_type] ?? agent_type, 40);
}

export function agentWord(agent_type: string): string {
  return NAMES[agent_type] ?? oneLine(agent_type, 40);
}

/** What a person named it, else where it works, else what it is. */
export function titleOf(card: Card): string {
  const { title, window_title, workspace_name, workspace_path } = card.session;
  const named = title || window_title || workspace_name || (workspace_path && leaf(workspace_path));
  return oneLine(named || agentName(card), 120);
}

export function folderOf(card: Card): string | null {
  const { workspace_path, workspace_name } = card.session;
  const folder = workspace_name ?? (workspace_path ? leaf(workspace_path) : null);
  return folder ? oneLine(folder, 80) : null;
}

/** What it does now, in the agent's words where it has some. */
export function activityOf(card: Card): string | null {
  const activity = card.session.activity;
  if (!activity || activity.kind === "idle" || card.session.status === "disconnected") return null;
  const label = oneLine(activity.label ?? "", 100);
  if (activity.kind === "running_command" && label && !/^running/i.test(label)) {
    return t.session.running(label);
  }
  return label || activity.kind.replaceAll("_", " ");
}
