// The questions of a prompt, read from what an agent sent, and the answers as agents read them.
// Anything may be in there.
//
// Two forms are known: a list of questions, answered by their words, and a JSON schema of an
// object, answered by its fields. The relay reads them the same way for clients of other dialects,
// with the same limits (`crates/wire/src/questions.rs`).

export interface Asked {
  key: string;
  text: string;
  /** What stands beside it, smaller. */
  hint: string | null;
  many: boolean;
  options: Option[];
  /** Options beyond the limit: a person must know that there are more. */
  optionsLeftOut: number;
  /** What may be written; null where only the options count. */
  own: { placeholder: string | null; isLong: boolean } | null;
  prefill: string[];
  isOptional: boolean;
  /** As what the agent wants to read it. */
  type: "text" | "integer" | "number" | "list";
}

export interface Option {
  label: string;
  /** By which the page knows it. */
  value: string;
  /** What is answered. */
  answer: unknown;
  description: string | null;
}

export type Given = Record<string, string[]>;

/** Questions and options that are shown; the page says how many more there are. An agent that asks
 * more is asked in its own window. */
const QUESTIONS_MAX = 32;
const OPTIONS_MAX = 100;

type Fields = Record<string, unknown>;
const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
const fields = (value: unknown) =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;

export const questionsOf = (raw: unknown): Asked[] => read(raw).slice(0, QUESTIONS_MAX);

/** How many questions are asked that are not shown. */
export const questionsLeftOut = (raw: unknown): number =>
  Math.max(0, read(raw).length - QUESTIONS_MAX);

function read(raw: unknown): Asked[] {
  if (Array.isArray(raw)) {
    // Two questions in the same words have one answer.
    const byKey = new Map<string, Asked>();
    for (const one of raw.flatMap(listed)) if (!byKey.has(one.key)) byKey.set(one.key, one);
    return [...byKey.values()];
  }
  const schema = fields(raw);
  const properties = fields(schema?.properties);
  if (!schema || !properties) return [];
  const required = new Set(list(schema.required));
  const all = Object.entries(properties);
  return all.flatMap(([key, one]) => property(key, fields(one), required.has(key)));
}

function listed(raw: unknown): Asked[] {
  const it = fields(raw);
  const words = text(it?.question) ?? text(it?.prompt) ?? text(it?.header);
  if (!it || !words) return [];
  return [
    {
      key: words,
      text: words,
      hint: null,
      many: it.multiSelect === true || it.multi_select === true,
      ...shown(list(it.options).flatMap(option)),
      own: { placeholder: text(it.placeholder), isLong: it.multiline === true },
      prefill: [text(it.prefill)].flatMap((words) => words ?? []),
      isOptional: false,
      type: "text",
    },
  ];
}

function property(key: string, it: Fields | null, isRequired: boolean): Asked[] {
  if (!it) return [];
  const isList = it.type === "array";
  const several = isList ? fields(it.items) : null;
  const options = it.type === "boolean" ? YES_OR_NO : choices(several ?? it);
  const prefill = typeof it.default === "object" ? [] : [it.default].filter((one) => one != null);
  const isNumber = it.type === "number" || it.type === "integer";
  return [
    {
      key,
      text: text(it.title) ?? key,
      hint: text(it.description),
      many: several !== null,
      ...shown(options),
      own: options.length > 0 ? null : { placeholder: null, isLong: false },
      prefill: prefill.map(String),
      isOptional: !isRequired,
      type: isList ? "list" : isNumber ? (it.type as "number" | "integer") : "text",
    },
  ];
}

/** `enum` with or without names, or `oneOf` and `anyOf` with a title each. */
function choices(it: Fields): Option[] {
  const names = list(it.enumNames);
  const plain = list(it.enum).flatMap((value, at) => choice(text(names[at]), value));
  const titled = [...list(it.oneOf), ...list(it.anyOf)].map(fields);
  return [...plain, ...titled.flatMap((one) => choice(text(one?.title), one?.const))];
}

function choice(name: string | null, answer: unknown): Option[] {
  const value = typeof answer === "string" ? answer : JSON.stringify(answer);
  const label = name ?? (typeof answer === "number" ? value : text(answer));
  return label && answer !== undefined ? [{ label, value, answer, description: null }] : [];
}

function option(raw: unknown): Option[] {
  const it = fields(raw);
  const label = text(raw) ?? text(it?.label);
  return label ? [{ label, value: label, answer: label, description: text(it?.description) }] : [];
}

const shown = (options: Option[]) => ({
  options: options.slice(0, OPTIONS_MAX),
  optionsLeftOut: Math.max(0, options.length - OPTIONS_MAX),
});

const YES_OR_NO: Option[] = [
  { label: "Yes", value: "true", answer: true, description: null },
  { label: "No", value: "false", answer: false, description: null },
];
const list = (raw: unknown): unknown[] => (Array.isArray(raw) ? raw : []);

/** How many questions still want an answer. */
export function unanswered(questions: Asked[], given: Given): number {
  return questions.filter((one) => !one.isOptional && !isAnswered(one, given)).length;
}

function isAnswered(one: Asked, given: Given): boolean {
  const all = (given[one.key] ?? []).filter((words) => words.trim() !== "");
  const first = all[0];
  if (first === undefined) return false;
  if (one.options.some((it) => it.value === first)) return true;
  if (one.type === "integer") return Number.isInteger(Number(first));
  return one.type !== "number" || Number.isFinite(Number(first));
}

/** One text for each question, or what the schema wants. */
export function answersOf(questions: Asked[], given: Given): Record<string, unknown> {
  const answered = questions.filter((one) => isAnswered(one, given));
  return Object.fromEntries(answered.map((one) => [one.key, answer(one, given[one.key] ?? [])]));
}

function answer(one: Asked, all: string[]): unknown {
  const options = new Map(one.options.map((it) => [it.value, it.answer]));
  const chosen = all.map((words) => (options.has(words) ? options.get(words) : words));
  switch (one.type) {
    case "text":
      return chosen.length === 1 ? chosen[0] : all.join(", ");
    case "integer":
    case "number":
      return typeof chosen[0] === "string" ? Number(chosen[0]) : chosen[0];
    case "list":
      return chosen;
  }
}

export const prefilled = (questions: Asked[]): Given =>
  Object.fromEntries(
    questions.filter((one) => one.prefill.length > 0).map((one) => [one.key, one.prefill]),
  );
