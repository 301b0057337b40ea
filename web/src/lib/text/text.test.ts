// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { compare, paired } from "../features/transcript/compare";
import { rowsOf } from "../features/transcript/rows";
import type { Item, ToolItem } from "../session/state";
import { Reader } from "./markdown";
import { cut, oneLine, plain } from "./plain";

const html = (text: string) =>
  new Reader()
    .read(text)
    .map((block) => (block.kind === "html" ? block.html : ""))
    .join("");

describe("what agents write", () => {
  it("hides nothing: what reorders or has no width becomes visible", () => {
    expect(plain("a\u202eb")).toBe("a‹U+202E›b");
    expect(plain("x\u0007y")).toBe("x\ufffdy");
    expect(plain("\u001b[31mred\u001b[0m \u001b]0;title\u0007end")).toBe("red end");
    expect(plain("one\r\ntwo\rthree")).toBe("one\ntwo\nthree");
    expect(plain("👩‍👩‍👧 family, naïve, 漢字")).toBe("👩‍👩‍👧 family, naïve, 漢字");
  });

  it("is one bearable line where one line is wanted", () => {
    expect(oneLine("a\n  b\tc")).toBe("a b c");
    expect(oneLine("x".repeat(500), 10)).toHaveLength(10);
  });

  it("is cut in view: long lines, and the beginning of long outputs", () => {
    const more = (count: number) => `[${count}]`;
    expect(cut("y".repeat(3_000), more).text).toMatch(/^y{2000}\[1000\]$/);
    const long = Array.from({ length: 10 }, (_, at) => `line ${at}`).join("\n");
    expect(cut(long, more, 3)).toEqual({ text: "line 7\nline 8\nline 9", lines: 7 });
  });
});

describe("markdown", () => {
  it("shows tags of the agent as text", () => {
    const shown = html('<script>alert(1)</script>\n\n<img src=x onerror="alert(1)"> **bold**');
    expect(shown).not.toMatch(/<(script|img)/);
    expect(shown).toContain("&lt;script&gt;");
  });

  it("has no link to a script, and opens the others apart", () => {
    const shown = html(
      "[a](javascript:alert(1)) [b](data:text/html,x) [c](https://example.org) ![d](http://x.y/z.png)",
    );
    expect(shown).not.toMatch(/javascript:|data:/);
    expect(shown).not.toContain("<img");
    expect(shown).toContain('rel="noopener noreferrer nofollow"');
    expect(shown).toContain('href="https://example.org"');
  });

  it("reads a growing text as it reads it whole", () => {
    const text =
      "# Title\n\nSome *words* here.\n\n- one\n- two\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end.";
    const growing = new Reader();
    let blocks = growing.read("");
    for (let at = 1; at <= text.length; at += 3) blocks = growing.read(text.slice(0, at));
    blocks = growing.read(text);
    const whole = new Reader().read(text);
    const content = (all: typeof whole) => all.map(({ key: _key, ...block }) => block);
    expect(content(blocks)).toEqual(content(whole));
  });

  it("hands code over with its language and nothing else of the fence", () => {
    const blocks = new Reader().read("```Rust {.x onload=y}\nlet a = 1;\n```");
    expect(blocks).toMatchObject([{ kind: "code", language: "rust", code: "let a = 1;" }]);
  });
});

describe("a comparison", () => {
  it("counts and numbers lines, and folds what stayed", () => {
    const before = Array.from({ length: 30 }, (_, at) => `line ${at}`);
    const after = before.with(15, "changed");
    const result = compare(before.join("\n"), after.join("\n"));
    expect(result).toMatchObject({ added: 1, removed: 1 });
    expect(result?.lines[0]).toEqual({ kind: "skip", count: 12 });
    expect(result?.lines).toContainEqual({ kind: "cut", old: 16, text: "line 15" });
    expect(result?.lines).toContainEqual({ kind: "add", now: 16, text: "changed" });
    const pairs = paired(result?.lines ?? []);
    expect(pairs).toContainEqual({
      left: { kind: "cut", old: 16, text: "line 15" },
      right: { kind: "add", now: 16, text: "changed" },
    });
  });

  it("of a new file adds all of it, and too long ones are not compared", () => {
    expect(compare("", "a\nb\n")).toMatchObject({ added: 2, removed: 0 });
    expect(compare("", "x\n".repeat(30_000))).toBeNull();
  });
});

describe("the rows of a transcript", () => {
  const tool = (id: string, more: Partial<ToolItem> = {}): ToolItem => ({
    kind: "tool",
    key: `t${id}`,
    id,
    tool: "Read",
    tool_kind: "read",
    status: "completed",
    title: id,
    input: undefined,
    output: null,
    output_bytes: null,
    diffs: [],
    locations: [],
    parent: null,
    began_at: "2026-03-19T10:00:00.000Z",
    ended_at: null,
    ...more,
  });

  it("fold three quiet calls in a row and no fewer", () => {
    const few = rowsOf([tool("a"), tool("b")]).rows.map((row) => row.kind);
    expect(few).toEqual(["item", "item"]);
    const items: Item[] = [tool("a"), tool("b"), tool("c"), tool("d", { tool_kind: "execute" })];
    const { rows } = rowsOf(items);
    expect(rows.map((row) => row.kind)).toEqual(["fold", "item"]);
  });

  it("have what a subagent did inside the call that made it", () => {
    const { rows, inside } = rowsOf([
      tool("a", { tool_kind: "other" }),
      tool("b", { parent: "a" }),
    ]);
    expect(rows).toHaveLength(1);
    expect(inside.get("a")).toHaveLength(1);
  });

  it("keep days apart when there are several", () => {
    const later = { began_at: "2026-03-21T10:00:00.000Z", tool_kind: "execute" as const };
    const kinds = rowsOf([tool("a", { tool_kind: "execute" }), tool("b", later)]).rows.map(
      (it) => it.kind,
    );
    expect(kinds).toEqual(["day", "item", "day", "item"]);
  });
});

describe("words in changed lines", () => {
  const marked = (before: string, after: string) =>
    (compare(before, after)?.lines ?? []).flatMap((line) =>
      "pieces" in line && line.pieces
        ? [line.pieces.filter((it) => it.isChanged).map((it) => it.text)]
        : [],
    );

  it("are marked where a line stands for another", () => {
    expect(marked("a\npub fast: bool,\n", "a\npub quick: bool,\n")).toEqual([["fast"], ["quick"]]);
    const { lines = [] } = compare("let a = 1;\n", "let a = 2;\n") ?? {};
    const whole = lines.map((line) =>
      "pieces" in line ? line.pieces?.map((it) => it.text).join("") : null,
    );
    expect(whole).toEqual(["let a = 1;", "let a = 2;"]);
  });

  it("are not marked where lines have little in common, have no like, or are too long", () => {
    expect(marked("one two three\n", "completely other words\n")).toEqual([]);
    expect(marked("let a = 1;\n", "let a = 2;\nlet b = 2;\n")).toEqual([]);
    const long = "word ".repeat(200);
    expect(marked(`${long}a\n`, `${long}b\n`)).toEqual([]);
  });
});
