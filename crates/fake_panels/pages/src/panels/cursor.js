// Cursor's composer: in the window itself, Lexical, rows with numbers, and buttons that take only
// a press of a pointer, not a click by script.
import { start } from "../chat.js";
import { lexical } from "../editors/lexical.js";
import { h } from "../page.js";
import { loading } from "../plain.js";

function pointed(action) {
  let isDown = false;
  return {
    pointerdown: () => (isDown = true),
    click: (event) => {
      if (!isDown) return;
      isDown = false;
      action(event);
    },
  };
}

start({
  name: "Cursor",
  labels: ["Run", "Always run", "Skip"],
  login: () => h("div", { class: "cursor-login" }, h("button", {}, "Log in")),
  loading,
  mount(host, chat) {
    this.transcript = h("div", { class: "composer-messages-container", style: "height: 400px; overflow: auto" });
    this.dialogHost = h("div", {});
    this.thinking = h("div", { class: "ui-thinking-indicator", hidden: true }, "Planning next moves");
    this.sendButton = h("div", { class: "ui-prompt-input-submit-button", role: "button", "aria-label": "Send", ...pointed((event) => chat.send(event)) }, "↑");
    this.stopButton = h("div", { class: "ui-prompt-input-stop-button", role: "button", "aria-label": "Stop", hidden: true, ...pointed(() => chat.stop()) }, "■");
    this.images = h("div", {});
    const name = h("span", { class: "ui-model-picker__trigger-text" }, chat.model);
    const picker = h("div", { class: "ui-model-picker__trigger", role: "button" }, name);
    Object.entries(pointed(() => this.openMenu(chat, name))).forEach(([type, heard]) => picker.addEventListener(type, heard));
    const box = h("div", {});
    this.root = h("div", { class: "composer-bar", "data-composer-id": chat.conversation },
      this.transcript, this.dialogHost, this.thinking, this.images, box, this.sendButton, this.stopButton, picker);
    host.append(
      h("div", { class: "monaco-workbench" },
        h("button", { class: "menu-run" }, "Run"), h("input", { class: "code", "aria-label": "Code" }),
        h("a", { "aria-label": "New Chat (Ctrl+N)", href: "#", ...pointed((event) => (event.preventDefault(), chat.newChat())) }, "+")),
      this.root);
    chat.editor = lexical(box, { class: "aislash-editor-input" }, chat, { rich: true });
  },
  openMenu(chat, name) {
    const menu = h("div", { role: "menu" });
    const close = () => (menu.remove(), document.removeEventListener("keydown", escape, true));
    const escape = (event) => event.key === "Escape" && close();
    document.addEventListener("keydown", escape, true);
    for (const model of chat.models) {
      menu.append(h("div", { role: "menuitem", ...pointed(() => (chat.choose(model), (name.textContent = model), close())) }, model));
    }
    document.body.append(menu);
  },
  conversed(id) {
    this.root.setAttribute("data-composer-id", id);
  },
  row: (row) => h("div", {
    "data-message-index": row.number,
    "data-message-id": row.id,
    "data-message-role": row.role === "user" ? "human" : "ai",
    "data-message-kind": row.role === "user" ? "human" : "assistant",
  }, row.text),
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
  dialog: (dialog, press) => h("div", { class: "composer-tool-former-message", "data-tool-call-id": dialog.id }, h("p", {}, dialog.text),
    ...dialog.labels.map((label, index) => h("button", {
      class: index === 0 ? "composer-run-button" : "composer-skip-button",
      ...pointed((event) => press(label, event)),
    }, label))),
});
