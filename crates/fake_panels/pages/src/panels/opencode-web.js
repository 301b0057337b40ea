// opencode's web page: one button that sends and stops; a question takes the composer's place.
import { start } from "../chat.js";
import { plaintext } from "../editors/plaintext.js";
import { h } from "../page.js";
import { loading, login, modelMenu } from "../plain.js";

start({
  name: "opencode",
  labels: ["Deny", "Allow always", "Allow once"],
  buttonStops: true,
  login,
  loading,
  mount(host, chat) {
    this.transcript = h("div", { "data-timeline-virtual-content": "", style: "height: 400px; overflow: auto" });
    this.sendButton = h("button", {
      "data-action": "prompt-submit", "aria-label": "Send",
      click: (event) => (chat.busy ? chat.stop() : chat.send(event)),
    }, "↑");
    this.images = h("div", {});
    const model = h("button", { "data-action": "prompt-model" });
    const box = h("div", {});
    this.dock = h("div", {}, this.images, box, this.sendButton, model);
    this.dialogHost = {
      append: (element) => {
        this.dock.before(element);
        this.dock.hidden = true;
        const gone = element.remove.bind(element);
        element.remove = () => (gone(), (this.dock.hidden = false));
      },
    };
    host.append(h("div", { id: "root" },
      h("button", { "aria-label": "New session", click: () => chat.newChat() }, "+"),
      h("main", {}, this.transcript, this.dock)));
    modelMenu(chat, {
      button: { element: model, label: (text) => (model.textContent = text) },
      menu: () => h("div", { role: "dialog" }),
      entry: (text, click) => h("button", { "data-slot": "list-item", click }, text),
    });
    chat.editor = plaintext(box, { "data-component": "prompt-input", "aria-label": "Prompt" }, chat);
  },
  row(row) {
    const isUser = row.role === "user";
    const words = h("div", { "data-slot": isUser ? "user-message-text" : "text-part-body" }, row.text);
    const part = h("div", { "data-component": isUser ? "user-message" : "text-part" }, words);
    const kind = isUser ? "UserMessage" : "AssistantPart";
    return h("div", { "data-timeline-key": `${kind}:${row.id}` },
      h("div", { "data-index": row.number }, h("div", { "data-timeline-row": kind }, part)));
  },
  update: (row) => (row.element.querySelector("[data-slot]").textContent = row.text),
  busy(busy) {
    this.sendButton.setAttribute("aria-label", busy ? "Stop" : "Send");
  },
  image() {
    this.images.append(h("span", {}, "image"));
  },
  noImages() {
    this.images.replaceChildren();
  },
  dialog: (dialog, press) => h("div", { "data-component": "dock-prompt" }, h("p", {}, dialog.text),
    ...dialog.labels.map((label) => h("button", { click: (event) => press(label, event) }, label))),
});
