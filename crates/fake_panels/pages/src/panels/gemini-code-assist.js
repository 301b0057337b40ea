// Gemini Code Assist's panel in VS Code: Angular's names, a plain-text composer.
import { start } from "../chat.js";
import { plaintext } from "../editors/plaintext.js";
import { h } from "../page.js";
import { loading, modelMenu } from "../plain.js";

start({
  name: "Gemini Code Assist",
  labels: ["Allow", "Always allow", "Deny"],
  login: () => h("button", { class: "sign-in-button" }, "Sign in"),
  loading,
  mount(host, chat) {
    this.transcript = h("chat-history", { style: "display: block; height: 400px; overflow: auto" });
    this.dialogHost = h("div", {});
    this.progress = h("mat-progress-bar", { hidden: true, style: "display: block" }, "…");
    this.sendButton = h("button", { class: "submit-button", "aria-label": "Submit prompt", click: (event) => chat.send(event) }, "➤");
    this.stopButton = h("button", { class: "chat-stop-button", "aria-label": "Stop", hidden: true, click: () => chat.stop() }, "■");
    const value = h("span", { class: "mat-mdc-select-value-text" });
    const select = h("mat-select", { class: "model-select", role: "combobox" }, value);
    const box = h("div", { class: "chat-submit" });
    host.append(h("chat-panel", { style: "display: block" },
      h("button", { class: "new-chat-button", "aria-label": "New chat", click: () => chat.newChat() }, "+"),
      this.transcript, this.dialogHost, this.progress, box, this.sendButton, this.stopButton, select));
    this.busy(false);
    modelMenu(chat, {
      button: { element: select, label: (text) => (value.textContent = text) },
      menu: () => h("div", { class: "cdk-overlay-pane", role: "listbox" }),
      entry: (text, click) => h("mat-option", { role: "option", style: "display: block", click },
        h("span", { class: "mdc-list-item__primary-text" }, text)),
    });
    chat.editor = plaintext(box, { class: "chat-submit-input" }, chat);
  },
  row: (row) => h("chat-history-item", { class: row.role, style: "display: block" },
    h("mat-icon", {}, "person"), h("div", { class: "history-item-text" }, row.text)),
  update: (row) => (row.element.querySelector(".history-item-text").textContent = row.text),
  busy(busy) {
    this.progress.style.display = busy ? "block" : "none";
    this.sendButton.hidden = busy;
    this.stopButton.hidden = !busy;
  },
  dialog: (dialog, press) => h("div", { class: "tool-confirmation" }, h("p", {}, dialog.text),
    ...dialog.labels.map((label) => h("button", { click: (event) => press(label, event) }, label))),
});
