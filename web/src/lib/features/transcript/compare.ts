// Two texts as lines that were kept, added and removed. Loaded when the first diff is opened.
import { diffArrays } from "diff";
import { LINE_MAX, plain } from "../../text/plain";

/** Longer texts are not compared here: it would hold the page up. */
const LINES_COMPARED_MAX = 20_000;
const COMPARE_WITHIN_MS = 1_500;
/** Unchanged lines that stay visible around a change. */
const AROUND = 3;

export type Line =
  | { kind: "same"; old: number; now: number; text: string }
  | { kind: "cut"; old: number; text: string }
  | { kind: "add"; now: number; text: string }
  | { kind: "skip"; count: number };

export interface Compared {
  lines: Line[];
  added: number;
  removed: number;
}

/** Nothing where the texts are too long to compare. */
export function compare(before: string, after: string): Compared | null {
  const [a, b] = [split(before), split(after)];
  if (a.length + b.length > LINES_COMPARED_MAX) return null;
  const changes = diffArrays(a, b, { timeout: COMPARE_WITHIN_MS });
  if (!changes) return null;
  const all: Line[] = [];
  let [old, now, added, removed] = [1, 1, 0, 0];
  for (const change of changes) {
    for (const raw of change.value) {
      const text = raw.length > LINE_MAX ? `${raw.slice(0, LINE_MAX)}…` : raw;
      if (change.added) {
        all.push({ kind: "add", now: now++, text });
        added += 1;
      } else if (change.removed) {
        all.push({ kind: "cut", old: old++, text });
        removed += 1;
      } else all.push({ kind: "same", old: old++, now: now++, text });
    }
  }
  return { lines: folded(all), added, removed };
}

function split(text: string): string[] {
  if (text === "") return [];
  const lines = plain(text).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Long stretches of unchanged lines become one. */
function folded(lines: Line[]): Line[] {
  const isNear = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    const end = Math.min(lines.length, index + AROUND + 1);
    for (let near = Math.max(0, index - AROUND); near < end; near += 1) isNear[near] = 1;
  });
  const shown: Line[] = [];
  let skipped = 0;
  lines.forEach((line, index) => {
    if (isNear[index]) {
      if (skipped > 0) shown.push({ kind: "skip", count: skipped });
      skipped = 0;
      shown.push(line);
    } else skipped += 1;
  });
  if (skipped > 0 && shown.length > 0) shown.push({ kind: "skip", count: skipped });
  return shown;
}

/** Side by side: what was removed beside what came in its place. */
export function paired(lines: Line[]): { left: Line | null; right: Line | null }[] {
  const pairs: { left: Line | null; right: Line | null }[] = [];
  let cuts: Line[] = [];
  let adds: Line[] = [];
  const flush = () => {
    for (let i = 0; i < Math.max(cuts.length, adds.length); i += 1) {
      pairs.push({ left: cuts[i] ?? null, right: adds[i] ?? null });
    }
    [cuts, adds] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === "cut") cuts.push(line);
    else if (line.kind === "add") adds.push(line);
    else {
      flush();
      pairs.push({ left: line, right: line });
    }
  }
  flush();
  return pairs;
}
