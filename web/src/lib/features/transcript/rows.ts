// The items of a story as rows of a list: days apart, quiet tools folded, subagents inside the
// call that made them.
import type { Item, ToolItem } from "../../session/state";
import { dayOf } from "../../text/format";

/** So many quiet calls in a row become one row. */
const FOLD_FROM = 3;

export type Row =
  | { kind: "item"; key: string; item: Item }
  | { kind: "fold"; key: string; tools: ToolItem[] }
  | { kind: "day"; key: string; at: string };

export interface Rows {
  rows: Row[];
  /** What the subagent of a call did, by the call's id. */
  inside: Map<string, Item[]>;
}

export function rowsOf(items: Item[]): Rows {
  const calls = new Set(items.flatMap((item) => (item.kind === "tool" ? [item.id] : [])));
  const inside = new Map<string, Item[]>();
  const rows: Row[] = [];
  let quiet: ToolItem[] = [];
  let day: string | null = null;

  const unfold = () => {
    const first = quiet[0];
    if (first && quiet.length >= FOLD_FROM) {
      rows.push({ kind: "fold", key: `f${first.key}`, tools: quiet });
    } else for (const item of quiet) rows.push({ kind: "item", key: item.key, item });
    quiet = [];
  };

  for (const item of items) {
    const parent = item.kind === "tool" || item.kind === "message" ? item.parent : null;
    if (parent !== null && calls.has(parent)) {
      const siblings = inside.get(parent);
      if (siblings) siblings.push(item);
      else inside.set(parent, [item]);
      continue;
    }
    const at = timeOf(item);
    const its = dayOf(at);
    if (its && at && its !== day) {
      unfold();
      // The first day needs a rule only when there is a second one.
      rows.push({ kind: "day", key: `d${its}${item.key}`, at });
      day = its;
    }
    if (item.kind === "tool" && isQuiet(item)) {
      quiet.push(item);
      continue;
    }
    unfold();
    rows.push({ kind: "item", key: item.key, item });
  }
  unfold();
  const days = rows.filter((row) => row.kind === "day");
  return { rows: days.length > 1 ? rows : rows.filter((row) => row.kind !== "day"), inside };
}

function isQuiet(tool: ToolItem): boolean {
  const looks =
    tool.tool_kind === "read" || tool.tool_kind === "search" || tool.tool_kind === "fetch";
  return looks && tool.status === "completed" && tool.diffs.length === 0;
}

function timeOf(item: Item): string | null {
  switch (item.kind) {
    case "tool":
      return item.began_at;
    case "run":
      return item.ended_at;
    case "message":
    case "answer":
    case "notice":
    case "failed":
      return item.at;
  }
}
