// The plainest skin: for tests of one editor, and a pattern for the others.
import { h, mutates } from "./page.js";

export const login = () => h("div", { class: "login" }, h("p", {}, "Please log in"), h("button", {}, "Log in"));
export const loading = () => h("div", { class: "loading", role: "progressbar" }, "Loading");

// A button that opens a menu of the chat's models, made of the given parts.
export function modelMenu(chat, { button, menu, entry, host = document.body }) {
  const show = () => button.label(chat.model);
  button.element.addEventListener("click", () => {
    const open = menu();
    const close = () => (open.remove(), document.removeEventListener("keydown", escape, true));
    const escape = (event) => event.key === "Escape" && close();
    document.addEventListener("keydown", escape, true);
    const entries = chat.models.map((model) => entry(model, () => (chat.choose(model), show(), close())));
    // Some menus are filled one entry after the other.
    const first = mutates("slow-menu") ? entries.splice(0, 1) : entries.splice(0);
    open.append(...first);
    host.append(open);
    setTimeout(() => open.append(...entries), 100);
  });
  show();
  return button.element;
}

export function plainSkin(name, editor) {
  return {
    name,
    labels: ["Allow", "Allow always", "Deny"],
    login,
    loading,
    mount(host, chat) {
      this.transcript = h("div", { class: "rows", style: "height: 400px; overflow: auto" });
      this.dialogHost = h("div", { class: "dialogs" });
      this.spinner = h("div", { class: "working", hidden: true }, "Working");
      this.sendButton = h("button", { class: "send", type: "button", click: (event) => chat.send(event) }, "Send");
      this.stopButton = h("button", { class: "stop", hidden: true, click: () => chat.stop() }, "Stop");
      this.images = h("div", { class: "images" });
      const model = h("button", { class: "model" });
      const box = h("div", { class: "box" });
      host.append(h("div", { class: "panel" },
        h("button", { class: "new-chat", click: () => chat.newChat() }, "New chat"),
        // What must never be pressed for a dialog's button.
        h("button", { class: "decoy" }, "Allow"),
        this.transcript, this.dialogHost, this.spinner, this.images, box, this.sendButton, this.stopButton, model));
      modelMenu(chat, {
        button: { element: model, label: (text) => (model.textContent = text) },
        menu: () => h("div", { class: "menu", role: "listbox" }),
        entry: (text, click) => h("div", { class: "entry", role: "option", click }, text),
      });
      chat.editor = editor(box, { class: "composer", "aria-label": "Message" }, chat);
    },
    row: (row) => h("div", { class: `row ${row.role}`, "data-id": row.id }, row.text),
    update: (row) => (row.element.textContent = row.text),
    busy(busy) {
      this.spinner.hidden = !busy;
      this.stopButton.hidden = !busy;
    },
    image() {
      this.images.append(h("span", { class: "image" }, "image"));
    },
    noImages() {
      this.images.replaceChildren();
    },
    dialog: (dialog, press) => h("div", { class: "dialog", "data-call": dialog.id },
      h("p", { class: "question" }, dialog.text),
      ...dialog.labels.map((label) => h("button", { click: (event) => press(label, event) }, label))),
  };
}
