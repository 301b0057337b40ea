// Two texts as lines that were kept, added and removed. Loaded when the first diff is opened.
import { diffArrays, diffWordsWithSpace } from "diff";
import { LINE_MAX, plain } from "../../text/plain";

/** Longer texts are not compared here: it would hold the page up. */
const LINES_COMPARED_MAX = 20_000;
const COMPARE_WITHIN_MS = 1_500;
/** Longer lines, and lines beyond so many, are not looked at word by word. */
const WORDS_LINE_MAX = 400;
const WORDS_PAIRS_MAX = 500;
/** Lines of which less stayed are different lines, and marks in them would be noise. */
const KEPT_SHARE_MIN = 0.35;
/** Unchanged lines that stay visible around a change. */
const AROUND = 3;

export type Line =
  | { kind: "same"; old: number; now: number; text: string }
  | { kind: "cut"; old: number; text: string; pieces?: Piece[] }
  | { kind: "add"; now: number; text: string; pieces?: Piece[] }
  | { kind: "skip"; count: number };

/** A stretch of a changed line. */
export interface Piece {
  text: string;
  isChanged: boolean;
}

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
  markWords(all);
  return { lines: folded(all), added, removed };
}

/** Marks the words that differ in lines that stand for each other. */
function markWords(lines: Line[]): void {
  let left = WORDS_PAIRS_MAX;
  for (let at = 0; at < lines.length && left > 0;) {
    const adds = run(lines, run(lines, at, "cut"), "add");
    const middle = run(lines, at, "cut");
    // As many of one as of the other: then each has its like.
    if (middle > at && adds - middle === middle - at) {
      for (let i = at; i < middle && left > 0; i += 1, left -= 1) {
        markPair(lines[i], lines[i + middle - at]);
      }
    }
    at = Math.max(adds, at + 1);
  }
}

/** Where the lines of a kind that begin here end. */
function run(lines: Line[], from: number, kind: Line["kind"]): number {
  let end = from;
  while (lines[end]?.kind === kind) end += 1;
  return end;
}

function markPair(cut: Line | undefined, add: Line | undefined): void {
  if (cut?.kind !== "cut" || add?.kind !== "add") return;
  if (Math.max(cut.text.length, add.text.length) > WORDS_LINE_MAX) return;
  const changes = diffWordsWithSpace(cut.text, add.text);
  const kept = changes.filter((it) => !it.added && !it.removed).map((it) => it.value.trim());
  const longest = Math.max(cut.text.trim().length, add.text.trim().length);
  if (kept.join("").length < longest * KEPT_SHARE_MIN) return;
  const pieces = (mine: "added" | "removed", other: "added" | "removed"): Piece[] =>
    changes.flatMap((it) => (it[other] ? [] : [{ text: it.value, isChanged: it[mine] }]));
  cut.pieces = pieces("removed", "added");
  add.pieces = pieces("added", "removed");
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
