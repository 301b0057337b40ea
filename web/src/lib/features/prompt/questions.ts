// The questions of a prompt, read from what an agent sent. Anything may be in there.

export interface Asked {
  key: string;
  text: string;
  many: boolean;
  options: { label: string; description: string | null }[];
}

/** Questions and options that are shown; an agent that asks more is asked in its own window. */
const QUESTIONS_MAX = 10;
const OPTIONS_MAX = 20;

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);

export function questionsOf(raw: unknown): Asked[] {
  if (!Array.isArray(raw)) return [];
  return raw.slice(0, QUESTIONS_MAX).flatMap((one: unknown) => {
    if (typeof one !== "object" || one === null) return [];
    const it = one as Record<string, unknown>;
    const words = text(it.question) ?? text(it.prompt) ?? text(it.header);
    if (!words) return [];
    const options = Array.isArray(it.options) ? it.options.slice(0, OPTIONS_MAX) : [];
    return [
      {
        key: words,
        text: words,
        many: it.multiSelect === true || it.multi_select === true,
        options: options.flatMap((option: unknown) => {
          if (typeof option === "string") return [{ label: option, description: null }];
          if (typeof option !== "object" || option === null) return [];
          const { label, description } = option as Record<string, unknown>;
          const name = text(label);
          return name ? [{ label: name, description: text(description) }] : [];
        }),
      },
    ];
  });
}

/** One text for each question, as agents read them. */
export function answersOf(given: Record<string, string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(given).map(([key, all]) => [key, all.join(", ")]));
}
