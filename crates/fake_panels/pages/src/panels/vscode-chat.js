// VS Code's own Chat: Monaco, a list that shows only some rows, dialogs that are there twice.
import { start } from "../chat.js";
import { monacoEditor } from "../editors/monaco.js";
import { h, mutates } from "../page.js";
import { loading } from "../plain.js";

start({
  name: "Chat",
  labels: ["Allow", "Always Allow", "Skip"],
  login: () => h("div", { class: "chat-welcome-view" }, h("a", { class: "monaco-button" }, "Sign in")),
  loading,
  mount(host, chat) {
    this.transcript = h("div", { class: "monaco-list-rows" });
    const list = h("div", { class: "interactive-list" }, h("div", { class: "monaco-list", style: "height: 400px; overflow: auto; position: relative" }, this.transcript));
    this.dialogHost = h("div", { class: "chat-inline-confirmations" });
    this.carousel = h("div", { class: "chat-carousels" });
    const send = h("a", { class: "action-label codicon codicon-send", role: "button", tabindex: "0", "aria-label": "Send\n[Alt] Send to New Chat", click: (event) => chat.send(event) }, "➤");
    this.sendButton = h("div", { class: "chat-submit-button" }, send);
    this.stopButton = h("a", { class: "action-label codicon codicon-stop-circle", role: "button", tabindex: "0", "aria-label": "Cancel (Ctrl+Escape)", style: "display: none", click: () => chat.stop() }, "■");
    const name = h("a", { class: "model-picker-name", role: "button", "aria-label": `Models, ${chat.model}`, click: () => this.openMenu(chat, name) }, chat.model);
    // Its own key for a new chat counts only while the cursor is in its field.
    const key = (event) => event.key === "n" && event.ctrlKey && (event.preventDefault(), chat.newChat());
    const box = h("div", { class: "interactive-input-editor", keydown: key });
    host.append(h("div", { class: "monaco-workbench" }, h("input", { class: "code", "aria-label": "Code" }),
      h("a", { role: "button", "aria-label": "New Chat (Ctrl+N)", href: "#", click: (event) => (event.preventDefault(), chat.newChat()) }, "+"),
      h("div", { class: "interactive-session" }, list, this.dialogHost, this.carousel,
        h("div", { class: "interactive-input-part" }, box, this.sendButton, this.stopButton, name))));
    chat.editor = monacoEditor(box, {}, chat);
  },
  openMenu(chat, name) {
    const rows = h("div", { class: "monaco-list" });
    const widget = h("div", { class: "action-widget", style: "position: fixed; top: 60px; left: 300px; z-index: 40; background: white" }, rows);
    const close = () => (widget.remove(), document.removeEventListener("keydown", escape, true));
    const escape = (event) => event.key === "Escape" && close();
    document.addEventListener("keydown", escape, true);
    const entry = (model) => h("div", {
      class: "monaco-list-row action", role: "option", style: "position: static",
      click: () => (chat.choose(model), (name.textContent = model), name.setAttribute("aria-label", `Models, ${model}`), close()),
    }, h("span", { class: "title" }, model));
    const more = h("div", {
      class: "monaco-list-row action", "aria-label": "Other Models", style: "position: static",
      // VS Code keeps it.
      click: () => (mutates("keep-more") || more.remove(), rows.append(...chat.models.slice(1).map(entry))),
    }, h("span", { class: "title" }, "Other Models"));
    rows.append(entry(chat.models[0]), more);
    document.body.append(widget);
  },
  row: (row) => h("div", { class: "monaco-list-row", "data-index": row.number, style: "position: static" },
    h("div", { class: `interactive-item-container ${row.role === "user" ? "interactive-request" : "interactive-response"}`, "data-index": row.number },
      h("div", { class: "value" }, row.text))),
  update: (row) => (row.element.querySelector(".value").textContent = row.text),
  busy(busy) {
    this.sendButton.style.display = busy ? "none" : "";
    this.stopButton.style.display = busy ? "" : "none";
    const answers = [...this.transcript.querySelectorAll(".interactive-response")];
    for (const answer of answers) {
      answer.classList.toggle("chat-response-loading", busy && answer === answers.at(-1));
    }
  },
  dialog(dialog, press) {
    const copy = () => h("div", { class: "chat-confirmation-widget2" },
      h("div", { class: "chat-confirmation-widget-title" }, dialog.text),
      ...dialog.labels.map((label) => h("a", { class: "monaco-button", role: "button", tabindex: "0", click: (event) => press(label, event) }, label)));
    return copy();
  },
});
