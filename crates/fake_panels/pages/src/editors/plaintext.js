// A contenteditable that takes plain text only; what is sent is its innerText.
import { h } from "../page.js";

export function plaintext(host, attributes, chat) {
  const element = h("div", {
    contenteditable: "plaintext-only",
    role: "textbox",
    style: "white-space: pre-wrap; overflow: auto; min-height: 40px; max-height: 120px",
    ...attributes,
    input: () => chat.changed(),
    keydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      chat.send(event);
    },
    paste: (event) => {
      if (event.clipboardData.files.length === 0) return;
      event.preventDefault();
      chat.pasted(event.clipboardData.files);
    },
  });
  host.append(element);
  const set = (text) => ((element.textContent = text), chat.changed());
  // A trailing line break is only there so that the caret can stand on the last line.
  const text = () => (element.innerText === "\n" ? "" : element.innerText.replace(/\n$/, ""));
  return { element, text, set, clear: () => set("") };
}
