// Codex's panel in VS Code: ProseMirror, units with keys, questions with radio buttons and a submit.
import { start } from "../chat.js";
import { prosemirror } from "../editors/prosemirror.js";
import { h } from "../page.js";
import { loading, modelMenu } from "../plain.js";

start({
  name: "Codex",
  labels: ["Yes", "Yes, and don't ask again", "No"],
  login: () => h("button", { "aria-label": "Sign in with ChatGPT" }, "Sign in"),
  loading,
  mount(host, chat) {
    this.transcript = h("div", { "data-thread-find-target": "conversation", style: "height: 400px; overflow: auto" });
    this.shimmer = h("div", { class: "loading-shimmer", hidden: true }, "Thinking");
    this.transcript.append(this.shimmer);
    this.dialogHost = h("div", {});
    this.sendButton = h("button", { "aria-label": "Send", type: "button", click: (event) => chat.send(event) }, "↑");
    this.stopButton = h("button", { "aria-label": "Stop", type: "button", hidden: true, click: () => chat.stop() }, "■");
    this.images = h("div", {});
    const model = h("button", { type: "button" });
    const box = h("div", {});
    this.root = h("main", { "data-conversation-id": chat.conversation },
      h("button", { "aria-label": "New chat", click: () => chat.newChat() }, "+"),
      this.transcript, this.dialogHost, this.images, box, this.sendButton, this.stopButton, model);
    host.append(this.root);
    modelMenu(chat, {
      button: {
        element: model,
        label: (text) => ((model.textContent = text), model.setAttribute("aria-label", `Model: ${text}`)),
      },
      menu: () => h("div", { role: "menu" }),
      entry: (text, click) => h("div", { role: "menuitem", click }, text),
    });
    chat.editor = prosemirror(box, {}, chat);
  },
  conversed(id) {
    this.root.setAttribute("data-conversation-id", id);
  },
  row: (row) => h("div", { "data-content-search-turn-key": `turn-${row.number}` },
    h("div", { "data-content-search-unit-key": `turn-${row.number}:0:${row.role}` }, row.text)),
  update: (row) => (row.element.firstChild.textContent = row.text),
  busy(busy) {
    this.shimmer.hidden = !busy;
    this.sendButton.hidden = busy;
    this.stopButton.hidden = !busy;
  },
  image() {
    this.images.append(h("span", {}, "image"));
  },
  noImages() {
    this.images.replaceChildren();
  },
  dialog(dialog, press) {
    let chosen = null;
    const radios = dialog.labels.map((label) => h("button", {
      role: "radio",
      type: "submit",
      "aria-checked": "false",
      click: (event) => {
        event.preventDefault();
        chosen = label;
        for (const radio of radios) radio.setAttribute("aria-checked", String(radio.textContent === label));
      },
    }, label));
    const submit = h("button", { type: "submit", click: (event) => (event.preventDefault(), chosen && press(chosen, event)) }, "Submit");
    return h("form", { "data-approval-id": dialog.id }, h("p", {}, dialog.text), ...radios, submit);
  },
});
