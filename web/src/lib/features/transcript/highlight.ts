// Colours for code, loaded when the first code is shown.
//
// Invariant: what comes out is the code with spans around parts of it, escaped by the highlighter.
import type { HLJSApi } from "highlight.js";

/** Longer code stays plain: colouring it would hold the page up. */
const HIGHLIGHTED_MAX = 60_000;

let loading: Promise<HLJSApi> | undefined;
const known = new Map<string, Promise<boolean>>();

const LANGUAGES: Record<string, () => Promise<{ default: unknown }>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  go: () => import("highlight.js/lib/languages/go"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  php: () => import("highlight.js/lib/languages/php"),
  python: () => import("highlight.js/lib/languages/python"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  scss: () => import("highlight.js/lib/languages/scss"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const ALIASES: Record<string, string> = {
  "c++": "cpp",
  cc: "cpp",
  console: "bash",
  cs: "csharp",
  docker: "dockerfile",
  h: "c",
  hpp: "cpp",
  html: "xml",
  js: "javascript",
  jsx: "javascript",
  kt: "kotlin",
  md: "markdown",
  mjs: "javascript",
  patch: "diff",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  svelte: "xml",
  svg: "xml",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  vue: "xml",
  yml: "yaml",
  zsh: "bash",
};

/** HTML of the code, or nothing where the language is unknown or the code too long. */
export async function highlighted(code: string, language: string): Promise<string | null> {
  const name = ALIASES[language] ?? language;
  const load = LANGUAGES[name];
  if (!load || code.length > HIGHLIGHTED_MAX) return null;
  loading ??= import("highlight.js/lib/core").then((module) => module.default);
  const api = await loading;
  let ready = known.get(name);
  if (!ready) {
    ready = load().then((module) => {
      api.registerLanguage(name, module.default as Parameters<HLJSApi["registerLanguage"]>[1]);
      return true;
    });
    known.set(name, ready);
  }
  await ready;
  return api.highlight(code, { language: name, ignoreIllegals: true }).value;
}

/** The language of a file, by the end of its name. */
export function languageOf(path: string): string {
  const name = path.split("/").at(-1)?.toLowerCase() ?? "";
  if (name === "dockerfile" || name === "makefile") return name;
  return name.includes(".") ? (name.split(".").at(-1) ?? "") : "";
}
