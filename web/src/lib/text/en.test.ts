import { describe, expect, it } from "vitest";
import { duration } from "./format";
import { en } from "./en";

/** Everything that may name a text, by its path. */
const sources = import.meta.glob<string>("../../**/*.{svelte,ts}", {
  query: "?raw",
  import: "default",
  eager: true,
});
const code = Object.entries(sources)
  .filter(([path]) => !path.endsWith(".test.ts") && !path.endsWith("text/en.ts"))
  .map(([, source]) => source.replaceAll(/^\s*(\/\/|\*).*$/gm, ""));
const all = code.join("\n");

/** The path of every text: `list.title`, `tool.verbs.read`. */
function paths(value: object, before: string[] = []): string[][] {
  return Object.entries(value).flatMap(([key, inner]) =>
    typeof inner === "object" && !Array.isArray(inner)
      ? paths(inner as object, [...before, key])
      : [[...before, key]],
  );
}

/** Whether the code names this text, or looks it up in its group. */
function isUsed(path: string[]): boolean {
  if (new RegExp(`\\bt\\.${path.join("\\.")}\\b`).test(all)) return true;
  const group = path.slice(0, -1).join("\\.");
  if (group === "") return false;
  // Looked up by a key, or handed over whole.
  if (new RegExp(`\\bt\\.${group}\\s*[[,)]`).test(all)) return true;
  // A file that gives the group a short name uses each text below that name.
  const alias = new RegExp(`const (\\{ )?(\\w+)( \\})? = t(\\.${group};|;)`);
  return code.some((source) => {
    const name = alias.exec(source)?.[2];
    return name !== undefined && new RegExp(`\\b${name}(\\.${path.at(-1)}\\b|\\[)`).test(source);
  });
}

describe("the texts on screen", () => {
  it("are all used", () => {
    const unused = paths(en).filter((path) => !isUsed(path));
    expect(unused.map((path) => path.join("."))).toEqual([]);
  });

  it("stand in no component: each is a key of this file", () => {
    const literal =
      />\s*[A-Z][a-z]+( [a-z]+)*[^<>{}=;()]*<\/|\b(title|aria-label|placeholder|alt)="[A-Z]/;
    const components = Object.entries(sources).filter(([path]) => path.endsWith(".svelte"));
    const found = components.flatMap(([path, source]) => {
      const markup = source.replace(/<(script|style)[\s\S]*?<\/\1>/g, "");
      const match = literal.exec(markup);
      return match ? [`${path}: ${match[0].trim()}`] : [];
    });
    expect(found).toEqual([]);
  });
});

describe("a length of time", () => {
  it("has no part that is zero, and no 60 seconds", () => {
    const told = [400, 2_500, 45_000, 59_700, 60_000, 95_000, 1_800_000, 3_600_000, 5_430_000];
    expect(told.map(duration)).toEqual([
      "400 ms",
      "2.5 s",
      "45 s",
      "1 min",
      "1 min",
      "1 min 35 s",
      "30 min",
      "1 h",
      "1 h 30 min",
    ]);
  });
});
