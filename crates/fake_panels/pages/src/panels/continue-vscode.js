// Continue's panel in VS Code: everything has a test id; its editor is ProseMirror (TipTap).
import { start } from "../chat.js";
import { prosemirror } from "../editors/prosemirror.js";
import { h } from "../page.js";
import { loading, modelMenu } from "../plain.js";

start({
  name: "Continue",
  labels: ["Accept", "Reject"],
  login: () => h("div", { "data-testid": "onboarding-card" }, h("button", {}, "Set up")),
  loading,
  mount(host, chat) {
    this.transcript = h("div", { "data-testid": "chat-history", style: "height: 400px; overflow: auto" });
    this.dialogHost = h("div", {});
    this.sendButton = h("button", { "data-testid": "submit-input-button", click: (event) => chat.send(event) }, "⏎ Enter");
    this.stopButton = h("button", { "data-testid": "stop-button", hidden: true, click: () => chat.stop() }, "Stop");
    this.images = h("div", {});
    const model = h("button", { "data-testid": "model-select-button" });
    const box = h("div", { "data-testid": "editor-input-main" });
    host.append(h("div", { id: "gui" },
      h("button", { "data-testid": "new-session-button", click: () => chat.newChat() }, "+"),
      this.transcript, this.dialogHost, this.images, box, this.sendButton, this.stopButton, model));
    modelMenu(chat, {
      button: { element: model, label: (text) => (model.textContent = text) },
      menu: () => h("ul", { role: "listbox" }),
      entry: (text, click) => h("li", { role: "option", click }, text),
    });
    chat.editor = prosemirror(box, { class: "tiptap ProseMirror" }, chat);
  },
  row: (row) => h("div", {
    "data-testid": row.role === "user" ? "chat-row-user" : `step-container-${row.number}`,
  }, row.text),
  update: (row) => (row.element.textContent = row.text),
  busy(busy) {
    this.sendButton.hidden = busy;
    this.stopButton.hidden = !busy;
  },
  image() {
    this.images.append(h("span", {}, "image"));
  },
  noImages() {
    this.images.replaceChildren();
  },
  dialog: (dialog, press) => h("div", {}, h("p", {}, dialog.text),
    ...dialog.labels.map((label) => h("button", {
      "data-testid": `${label.toLowerCase()}-tool-call-button-${dialog.id}`,
      click: (event) => press(label, event),
    }, label))),
});
