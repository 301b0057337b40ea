// What agents write is hostile until shown otherwise: characters that hide or reorder others
// become visible, and lines that would freeze a browser are cut in view.

/** Characters of one line that are laid out; the rest is told by its length. */
export const LINE_MAX = 2_000;
/** Lines of an output that are laid out at once. */
export const LINES_MAX = 2_000;
/** Characters of a message that are shown without being asked. */
export const MESSAGE_MAX = 200_000;

// Colours and cursor movements of terminals: nothing to read in them.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
// Embeddings, overrides, isolates and marks that change the order in which a line is read, and
// characters without any width that hide in names.
const REORDERING = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u200b\u2060\ufeff\u00ad]/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

const name = (character: string) =>
  `‹U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`;

/** The same text, with nothing in it that shows what it is not. */
export function plain(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(ESCAPES, "")
    .replace(REORDERING, name)
    .replace(CONTROLS, "\ufffd");
}

/** One line of it: titles, names, paths. */
export function oneLine(text: string, max = 200): string {
  const line = plain(text.slice(0, max * 4))
    .replace(/\s+/g, " ")
    .trim();
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}

export interface Cut {
  text: string;
  /** Lines left out at the beginning. */
  lines: number;
}

/** An output as it is laid out: its last lines, each of bearable length. */
export function cut(output: string, more: (count: number) => string, lines_max = LINES_MAX): Cut {
  const lines = plain(output).split("\n");
  if (lines.at(-1) === "") lines.pop();
  const left = Math.max(0, lines.length - lines_max);
  const shown = lines.slice(left).map((line) => {
    return line.length > LINE_MAX ? line.slice(0, LINE_MAX) + more(line.length - LINE_MAX) : line;
  });
  return { text: shown.join("\n"), lines: left };
}

/** Long lines of a text are broken off in view, for what is laid out as running text too. */
export function bearable(text: string, more: (count: number) => string): string {
  if (text.length <= LINE_MAX) return plain(text);
  return plain(text)
    .split("\n")
    .map((line) => {
      const limit = LINE_MAX * 10;
      return line.length > limit ? line.slice(0, limit) + more(line.length - limit) : line;
    })
    .join("\n");
}
