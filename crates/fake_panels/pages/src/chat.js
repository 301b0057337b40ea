// A chat that is none: what the person types decides what the "agent" does.
//
//   slow: N    streams N words, slowly enough to be stopped
//   ask: TEXT  asks TEXT in a dialog, and says which button was pressed
//   other      says `echo: …`
//
// A test does further things with `panel:do` events at the document; their detail is JSON text.

import { every, h, instance, mutates, option, tell } from "./page.js";

const WORD_MS = 60;
const VIRTUAL_ROWS = 6;
const SLOW_MS = 1500;

export class Chat {
  rows = [];
  dialog = null;
  busy = false;
  models = ["alpha-1", "beta-2", "gamma-3"];
  model = "alpha-1";
  images = [];
  #endTalk = () => {};
  #asked = 0;
  #numbered = 0;
  #refusals = mutates("refuse") ? Infinity : mutates("refuse-twice") ? 2 : 0;
  #dialogElements = [];

  constructor(skin) {
    this.skin = skin;
    this.conversation = option("conversation") ?? `conversation-${instance}`;
  }

  start() {
    document.title = option("title") ?? `${this.skin.name} - workspace`;
    document.addEventListener("panel:do", (event) => this.#do(JSON.parse(event.detail)));
    for (const type of ["pointerdown", "click"]) {
      document.addEventListener(type, (event) => this.#pressed(event), true);
    }
    this.host = h("div", { style: "height: 100vh" });
    document.body.append(this.host);
    if (mutates("login")) {
      this.host.append(this.skin.login());
      tell("ready", { shows: "login" });
      return;
    }
    if (mutates("slow")) {
      const waits = this.skin.loading();
      this.host.append(waits);
      setTimeout(() => (waits.remove(), this.#mount()), SLOW_MS);
      return;
    }
    this.#mount();
  }

  #mount() {
    this.skin.mount(this.host, this);
    for (let number = 0; number < Number(option("rows") ?? 0); number += 1) {
      this.add(number % 2 ? "assistant" : "user", `earlier row ${number}`);
    }
    this.#recall();
    const sticky = option("sticky") ?? "";
    if (option("draft") || sticky) this.editor.set(sticky + (option("draft") ?? ""));
    if (mutates("rename-send")) this.#renameSend();
    if (mutates("drop-send")) this.skin.sendButton.remove();
    if (mutates("drop-composer")) this.editor.element.remove();
    if (option("ask")) this.ask(option("ask"));
    this.changed();
    tell("ready", { shows: "panel", is_again: sessionStorage.getItem(instance) !== null });
    sessionStorage.setItem(instance, "1");
  }

  // Called by the editor whenever its text may have changed.
  changed() {
    const button = this.skin.sendButton;
    const empty = this.editor.text() === "" && this.images.length === 0;
    // As most panels do: nothing to send, nothing to press.
    if (button && "disabled" in button && !this.skin.buttonStops) button.disabled = empty;
    // Whoever types waits for a button that never comes to life.
    if (mutates("hold-send") && !empty) {
      button.disabled = true;
      tell("typing", { text: this.editor.text() });
    }
  }

  pasted(files) {
    for (const file of files) {
      const image = { type: file.type, bytes: file.size, name: file.name };
      this.images.push(image);
      tell("pasted", image);
      this.skin.image?.(image);
    }
    this.changed();
  }

  send(event) {
    const text = this.editor.text();
    if (text.trim() === "" && this.images.length === 0) return;
    if (mutates("swallow-send")) return void tell("swallowed");
    if (this.#refusals > 0) return void this.#refuse();
    const told = tell("sent", { text, images: this.images, is_trusted: event?.isTrusted ?? null });
    if (mutates("reload-on-send")) return void told.then(() => location.reload());
    this.add("user", text);
    if (mutates("keep-text")) return;
    const emptied = () => {
      this.images = [];
      this.skin.noImages?.();
      this.editor.set(option("sticky") ?? "");
      this.changed();
      tell("emptied");
    };
    if (mutates("slow-send")) setTimeout(emptied, SLOW_MS);
    else emptied();
    this.#run(text);
  }

  #refuse() {
    this.#refusals -= 1;
    const toast = document.createElement("div");
    toast.className = "toast";
    toast.textContent = "Not yet: it is still loading";
    document.body.append(toast);
    tell("refused");
  }

  add(role, text) {
    this.#numbered += 1;
    const row = { id: `row-${this.#numbered}`, number: this.#numbered, role, text };
    row.element = this.skin.row(row);
    this.rows.push(row);
    this.skin.transcript.append(row.element);
    this.#keep();
    if (mutates("virtual")) {
      for (const old of this.rows.slice(0, -VIRTUAL_ROWS)) old.element.remove();
    }
    return row;
  }

  stop() {
    if (!this.busy) return;
    tell("stopped");
    this.#endTalk();
    this.add("assistant", "stopped by the person");
    this.#setBusy(false);
  }

  ask(text, labels = this.skin.labels) {
    this.#closeDialog();
    this.#asked += 1;
    const dialog = { id: `call-${this.#asked}`, text, labels };
    this.dialog = dialog;
    const copies = mutates("dup-dialog") ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      const element = this.skin.dialog(dialog, (label, event) => this.#answer(dialog, label, event));
      this.#dialogElements.push(element);
      (copy === 0 ? this.skin.dialogHost : (this.skin.carousel ?? this.skin.dialogHost)).append(element);
      if (mutates("swap-on-hover")) {
        element.addEventListener("mousemove", () => this.#swap("Delete everything?"), { once: true });
      }
    }
    this.#keep();
    tell("asked", { dialog: dialog.id, text });
  }

  choose(model) {
    this.model = model;
    tell("model", { model });
  }

  newChat() {
    for (const row of this.rows) row.element.remove();
    this.rows = [];
    this.#numbered = 0;
    this.conversation = `conversation-${instance}-${Date.now()}`;
    this.skin.conversed?.(this.conversation);
    this.#keep();
    // The new chat's field comes later.
    if (mutates("slow-chat")) {
      this.editor.element.hidden = true;
      setTimeout(() => (this.editor.element.hidden = false), SLOW_MS * 2);
    }
    tell("new_chat");
  }

  #answer(dialog, label, event) {
    const told = tell("answered", { dialog: dialog.id, text: dialog.text, label, is_trusted: event.isTrusted });
    if (mutates("reload-on-answer")) return void told.then(() => location.reload());
    if (this.dialog !== dialog || mutates("stuck-dialog")) return;
    if (mutates("slow-answer")) return void setTimeout(() => this.#closeDialog(), SLOW_MS);
    this.#closeDialog();
    // The same once more, at once: another question in the same words.
    if (mutates("ask-again") && this.#asked === 1) return this.ask(dialog.text, dialog.labels);
    this.add("assistant", `chose: ${label}`);
    this.#setBusy(false);
  }

  #closeDialog() {
    for (const element of this.#dialogElements) element.remove();
    this.#dialogElements = [];
    this.dialog = null;
    this.#keep();
  }

  // A panel that shows after a reload what it showed before.
  #keep() {
    if (!mutates("keep")) return;
    const rows = this.rows.map(({ role, text }) => ({ role, text }));
    const asked = this.dialog && { text: this.dialog.text, labels: this.dialog.labels };
    sessionStorage.setItem(`${instance}-kept`, JSON.stringify({ rows, asked }));
  }

  #recall() {
    const kept = mutates("keep") && JSON.parse(sessionStorage.getItem(`${instance}-kept`) ?? "null");
    if (!kept) return;
    for (const { role, text } of kept.rows) this.add(role, text);
    if (kept.asked) this.ask(kept.asked.text, kept.asked.labels);
  }

  #swap(text) {
    if (this.dialog) this.ask(text, this.dialog.labels);
  }

  #run(text) {
    const slow = /^slow: (\d+)/.exec(text);
    const ask = /^ask: (.*)/s.exec(text);
    this.#setBusy(true);
    if (ask) return this.ask(ask[1]);
    const words = slow
      ? Array.from({ length: Number(slow[1]) }, (_, number) => `word${number} `)
      : ["echo: ", text];
    const row = this.add("assistant", "");
    this.#endTalk = every(WORD_MS, () => {
      row.text += words.shift() ?? "";
      this.skin.update(row);
      this.#keep();
      if (mutates("reload") && !sessionStorage.getItem(`${instance}-reloaded`) && words.length) {
        sessionStorage.setItem(`${instance}-reloaded`, "1");
        return location.reload();
      }
      if (words.length > 0) return;
      this.#endTalk();
      this.#setBusy(false);
    });
  }

  #setBusy(busy) {
    this.busy = busy;
    this.skin.busy(busy);
    this.changed();
    tell("busy", { busy });
  }

  // More words of the last row.
  #write(text) {
    const row = this.rows.at(-1);
    row.text += text;
    this.skin.update(row);
  }

  // Another transcript in the place of this one, without anybody's press.
  #show(rows) {
    for (const row of this.rows) row.element.remove();
    this.rows = [];
    this.#numbered = 0;
    for (const { role, text } of rows) this.add(role, text);
  }

  // Which part of a virtual list is in the document.
  #scroll(from) {
    for (const row of this.rows) row.element.remove();
    for (const row of this.rows.slice(from, from + VIRTUAL_ROWS)) this.skin.transcript.append(row.element);
  }

  #renameSend() {
    const button = this.skin.sendButton;
    for (const { name } of [...button.attributes]) {
      if (name === "class" || name.startsWith("data-") || name === "aria-label") button.removeAttribute(name);
    }
    button.className = "renamed_x1";
  }

  #pressed(event) {
    const element = event.target.closest?.("button, a, [role=button], [role=option], [role=radio]");
    const within = this.#dialogElements.some((dialog) => dialog.contains(event.target));
    const label = element?.getAttribute("aria-label") ?? element?.textContent.trim() ?? null;
    const { hidden } = document;
    tell(event.type, { label, within_dialog: within, is_trusted: event.isTrusted, is_hidden: hidden });
  }

  #do(order) {
    switch (order.do) {
      case "say": return void this.add(order.role, order.text);
      case "write": return this.#write(order.text);
      case "ask": return this.ask(order.text, order.labels);
      case "swap": return this.#swap(order.text);
      case "withdraw": return this.#closeDialog();
      case "clear": return this.#show([]);
      case "show": return this.#show(order.rows);
      case "scroll": return this.#scroll(order.from);
      case "busy": return this.#setBusy(order.busy);
      case "draft": return this.editor.set(order.text);
      case "drop-composer": return this.editor.element.remove();
      case "rename-send": return this.#renameSend();
      case "title": return void (document.title = order.title);
      case "reload": return location.reload();
      default: throw new Error(`no such order: ${order.do}`);
    }
  }
}

export function start(skin) {
  const chat = new Chat(skin);
  window.panel = chat;
  chat.start();
}
