// The questions of a prompt, read from what an agent sent, and the answers as agents read them.
// Anything may be in there.
//
// Two forms are known: a list of questions, answered by their words, and a JSON schema of an
// object, answered by its fields.

export interface Asked {
  key: string;
  text: string;
  /** What stands beside it, smaller. */
  hint: string | null;
  many: boolean;
  options: Option[];
  /** What may be written; null where only the options count. */
  own: { placeholder: string | null; isLong: boolean } | null;
  prefill: string[];
  isOptional: boolean;
  /** As what the agent wants to read it. */
  type: "text" | "number" | "boolean" | "list";
}

export interface Option {
  label: string;
  /** What is answered, where that is not the label. */
  value: string;
  description: string | null;
}

export type Given = Record<string, string[]>;

/** Questions and options that are shown; an agent that asks more is asked in its own window. */
const QUESTIONS_MAX = 10;
const OPTIONS_MAX = 20;

type Fields = Record<string, unknown>;
const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
const fields = (value: unknown) =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;

export function questionsOf(raw: unknown): Asked[] {
  if (Array.isArray(raw)) {
    // Two questions in the same words have one answer.
    const all = raw.slice(0, QUESTIONS_MAX).flatMap(listed);
    return all.filter((one, at) => all.findIndex((it) => it.key === one.key) === at);
  }
  const schema = fields(raw);
  const properties = fields(schema?.properties);
  if (!schema || !properties) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  const all = Object.entries(properties).slice(0, QUESTIONS_MAX);
  return all.flatMap(([key, one]) => property(key, fields(one), required.includes(key)));
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
      options: list(it.options).flatMap(option),
      own: { placeholder: text(it.placeholder), isLong: it.multiline === true },
      prefill: [text(it.prefill)].flatMap((words) => words ?? []),
      isOptional: false,
      type: "text",
    },
  ];
}

function property(key: string, it: Fields | null, isRequired: boolean): Asked[] {
  if (!it) return [];
  const several = it.type === "array" ? fields(it.items) : null;
  const options = choices(several ?? it);
  const isBoolean = it.type === "boolean";
  const prefill = typeof it.default === "object" ? [] : [it.default].filter((one) => one != null);
  return [
    {
      key,
      text: text(it.title) ?? key,
      hint: text(it.description),
      many: several !== null,
      options: isBoolean ? [yesOrNo("Yes", "true"), yesOrNo("No", "false")] : options,
      own: isBoolean || options.length > 0 ? null : { placeholder: null, isLong: false },
      prefill: prefill.map(String),
      isOptional: !isRequired,
      type: several
        ? "list"
        : isBoolean
          ? "boolean"
          : it.type === "number" || it.type === "integer"
            ? "number"
            : "text",
    },
  ];
}

/** `enum` with or without names, or `oneOf` and `anyOf` with a title each. */
function choices(it: Fields): Option[] {
  const names = list(it.enumNames);
  const plain = list(it.enum).flatMap((value, at) => {
    const words = text(value);
    return words ? [{ label: text(names[at]) ?? words, value: words, description: null }] : [];
  });
  const titled = [...list(it.oneOf), ...list(it.anyOf)].flatMap((raw) => {
    const value = text(fields(raw)?.const);
    return value ? [{ label: text(fields(raw)?.title) ?? value, value, description: null }] : [];
  });
  return [...plain, ...titled].slice(0, OPTIONS_MAX);
}

function option(raw: unknown): Option[] {
  const it = fields(raw);
  const label = text(raw) ?? text(it?.label);
  return label ? [{ label, value: label, description: text(it?.description) }] : [];
}

const yesOrNo = (label: string, value: string): Option => ({ label, value, description: null });
const list = (raw: unknown): unknown[] => (Array.isArray(raw) ? raw.slice(0, OPTIONS_MAX) : []);

/** How many questions still want an answer. */
export function unanswered(questions: Asked[], given: Given): number {
  return questions.filter((one) => !one.isOptional && !isAnswered(one, given)).length;
}

function isAnswered(one: Asked, given: Given): boolean {
  const all = (given[one.key] ?? []).filter((words) => words.trim() !== "");
  if (all.length === 0) return false;
  return one.type !== "number" || Number.isFinite(Number(all[0]));
}

/** One text for each question, or what the schema wants. */
export function answersOf(questions: Asked[], given: Given): Record<string, unknown> {
  const answered = questions.filter((one) => isAnswered(one, given));
  return Object.fromEntries(answered.map((one) => [one.key, answer(one, given[one.key] ?? [])]));
}

function answer(one: Asked, all: string[]): unknown {
  switch (one.type) {
    case "text":
      return all.join(", ");
    case "number":
      return Number(all[0]);
    case "boolean":
      return all[0] === "true";
    case "list":
      return all;
  }
}

export const prefilled = (questions: Asked[]): Given =>
  Object.fromEntries(
    questions.filter((one) => one.prefill.length > 0).map((one) => [one.key, one.prefill]),
  );
