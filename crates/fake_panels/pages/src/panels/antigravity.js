// Antigravity's side panel: in the window itself, Lexical, tooltips as ids.
import { start } from "../chat.js";
import { lexical } from "../editors/lexical.js";
import { h } from "../page.js";
import { loading, modelMenu } from "../plain.js";

start({
  name: "Antigravity",
  labels: ["Run", "Always run", "Reject"],
  login: () => h("div", { class: "antigravity-sign-in" }, h("button", {}, "Sign in")),
  loading,
  mount(host, chat) {
    this.transcript = h("div", { id: "conversation", style: "height: 400px; overflow: auto" });
    this.dialogHost = h("div", {});
    this.thinking = h("div", { "data-testid": "thinking-indicator", hidden: true }, "Thinking");
    this.sendButton = h("button", { "data-tooltip-id": "input-send-button-send-tooltip", "aria-label": "Send message", click: (event) => chat.send(event) }, "→");
    this.stopButton = h("button", { "data-tooltip-id": "input-send-button-cancel-tooltip", "aria-label": "Cancel", hidden: true, click: () => chat.stop() }, "■");
    this.images = h("div", {});
    const model = h("button", { "data-testid": "model-selector" });
    const box = h("div", {});
    this.root = h("div", { class: "antigravity-agent-side-panel", id: "cascade", "data-cascade-id": chat.conversation },
      h("a", { "data-tooltip-id": "new-conversation-tooltip", href: "#", click: (event) => (event.preventDefault(), chat.newChat()) }, "+"),
      this.transcript, this.dialogHost, this.thinking, this.images, box, this.sendButton, this.stopButton, model);
    host.append(
      // The rest of the window: an editor with a menu that must never be touched.
      h("div", { class: "monaco-workbench" },
        h("button", { class: "menu-run" }, "Run"), h("input", { class: "code", "aria-label": "Code" })),
      this.root);
    modelMenu(chat, {
      button: { element: model, label: (text) => (model.textContent = text) },
      menu: () => h("div", { role: "listbox" }),
      entry: (text, click) => h("div", { role: "option", click }, text),
    });
    chat.editor = lexical(box, { role: "combobox", "aria-label": "Message input" }, chat);
  },
  conversed(id) {
    this.root.setAttribute("data-cascade-id", id);
  },
  row: (row) => h("div", { "data-message-role": row.role }, row.text),
  update: (row) => (row.element.textContent = row.text),
  busy(busy) {
    this.thinking.hidden = !busy;
    this.sendButton.hidden = busy;
    this.stopButton.hidden = !busy;
  },
  image() {
    this.images.append(h("span", {}, "image"));
  },
  noImages() {
    this.images.replaceChildren();
  },
  dialog: (dialog, press) => h("div", { "data-testid": "run-command-card" }, h("p", {}, "Run command?"), h("pre", {}, dialog.text),
    ...dialog.labels.map((label) => h("button", { click: (event) => press(label, event) }, label))),
});
