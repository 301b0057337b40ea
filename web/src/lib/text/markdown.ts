// Markdown of an agent as blocks of safe HTML.
//
// Invariant: no HTML of the agent survives (tags are shown as text), no link leads to a script,
// nothing is loaded from anywhere. Growing text re-reads its last blocks only.
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";

export type Block =
  | { kind: "html"; key: string; html: string }
  | { kind: "code"; key: string; code: string; language: string };

/** Rendered blocks that are remembered: a transcript that is scrolled shows the same ones again. */
const BLOCKS_KEPT_MAX = 2_000;
const kept = new Map<string, string>();

const escape = (text: string) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");

const marked = new Marked({
  gfm: true,
  renderer: {
    // What looks like HTML is words that the agent wrote.
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text),
    // A picture from elsewhere would tell that somebody reads; its address is enough.
    image: ({ href, text }: Tokens.Image) =>
      `<a href="${escape(href)}">${escape(text || href)}</a>`,
  },
});

const purify = typeof window === "undefined" ? null : DOMPurify(window);
purify?.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
});

const ALLOWED = {
  ALLOWED_TAGS: (
    "p br em strong del code pre blockquote ul ol li a h1 h2 h3 h4 h5 h6 hr table thead tbody tr " +
    "th td input"
  ).split(" "),
  ALLOWED_ATTR: ["href", "target", "rel", "align", "type", "checked", "disabled", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
};

/** The blocks of a text; `before` are those of a text that this one goes on from. */
export class Reader {
  private text = "";
  private tokens: Token[] = [];

  read(text: string): Block[] {
    if (text.startsWith(this.text) && this.tokens.length > 2) {
      // The last blocks may still change with what comes after them.
      const settled = this.tokens.slice(0, -2);
      const length = settled.reduce((sum, token) => sum + token.raw.length, 0);
      this.tokens = [...settled, ...marked.lexer(text.slice(length))];
    } else {
      this.tokens = marked.lexer(text);
    }
    this.text = text;
    return this.tokens.flatMap((token, index) => block(token, index));
  }
}

function block(token: Token, index: number): Block[] {
  if (token.type === "space") return [];
  if (token.type === "code") {
    const { text, lang } = token as Tokens.Code;
    const language = /^[\w+#.-]{1,30}/.exec(lang ?? "")?.[0] ?? "";
    return [{ kind: "code", key: `c${index}`, code: text, language: language.toLowerCase() }];
  }
  if (token.type === "html")
    return [{ kind: "html", key: `h${index}`, html: `<p>${escape(token.raw.trim())}</p>` }];
  return [{ kind: "html", key: `h${index}`, html: render(token) }];
}

function render(token: Token): string {
  const known = kept.get(token.raw);
  if (known !== undefined && token.type !== "list") return known;
  const html = purify?.sanitize(marked.parser([token]), ALLOWED) ?? "";
  if (kept.size >= BLOCKS_KEPT_MAX) kept.clear();
  kept.set(token.raw, html);
  return html;
}
