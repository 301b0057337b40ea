// Claude Code's panel in VS Code: classes with a hash, one button that sends and stops.
import { start } from "../chat.js";
import { plaintext } from "../editors/plaintext.js";
import { h } from "../page.js";
import { loading } from "../plain.js";

start({
  name: "Claude Code",
  labels: ["Yes", "Yes, and don't ask again", "No"],
  login: () => h("div", { class: "loginContainer_a1B2c3" }, h("button", {}, "Log in")),
  loading,
  mount(host, chat) {
    this.chat = chat;
    this.transcript = h("div", { class: "messagesContainer_07S1Yg", style: "height: 400px; overflow: auto" });
    this.dialogHost = h("div", {});
    this.spinner = h("div", { class: "spinnerRow_07S1Yg", hidden: true }, "Thinking…");
    this.sendButton = h("button", {
      class: "sendButton_gGYT1w",
      type: "submit",
      "aria-label": "Send message",
      click: (event) => (event.preventDefault(), chat.send(event)),
    }, "↑");
    this.stopButton = h("button", { class: "stopButton_gGYT1w", type: "button", "aria-label": "Stop", hidden: true, click: () => chat.stop() }, "■");
    this.images = h("div", { class: "attachments_cKsPxg" });
    const box = h("div", { class: "inputWrapper_cKsPxg" });
    host.append(h("div", { class: "chatContainer_07S1Yg" },
      h("button", { "aria-label": "New conversation", click: () => chat.newChat() }, "+"),
      this.transcript, this.dialogHost, this.spinner, this.images,
      h("form", { class: "inputContainer_cKsPxg", submit: (event) => event.preventDefault() }, box,
        // Always there, and no question: only its class resembles one.
        h("div", { class: "permissionsContainer_gGYT1w" }, h("button", { type: "button" }, "Ask before edits")),
        h("span", { class: "modelName_gGYT1w" }, chat.model),
        this.sendButton, this.stopButton)));
    chat.editor = plaintext(box, { class: "messageInput_cKsPxg", "aria-label": "Message input" }, chat);
  },
  row: (row) => row.role === "user"
    ? h("div", { class: "message_07S1Yg userMessageContainer_07S1Yg" }, row.text)
    : h("div", { class: "message_07S1Yg", "data-testid": "assistant-message" }, row.text),
  update: (row) => (row.element.textContent = row.text),
  busy(busy) {
    this.spinner.hidden = !busy;
    this.sendButton.hidden = busy;
    this.stopButton.hidden = !busy;
  },
  image() {
    this.images.append(h("span", { class: "attachment_cKsPxg" }, "image"));
  },
  noImages() {
    this.images.replaceChildren();
  },
  dialog: (dialog, press) => h("div", { class: "permissionRequestContainer_Xy12Za", tabindex: "0" },
    h("div", { class: "permissionRequestContent_Xy12Za" }, dialog.text),
    ...dialog.labels.map((label) => h("button", { click: (event) => press(label, event) }, label))),
});
