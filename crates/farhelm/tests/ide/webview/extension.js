// An agent's panel as extensions make them: a webview that shows what its extension tells it.
// "ask LINE" wants to write a line to note.txt, "slow N" says N words one by one, everything else
// is said back.
const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

const PAUSE_MS = 150;

class Agent {
  #view;
  #answered = () => {};
  #isStopped = false;

  constructor(view) {
    this.#view = view;
  }

  #show = (show, rest) => this.#view.postMessage({ show, ...rest });

  async hears({ text, answer, stop }) {
    if (answer) return this.#answered(answer);
    if (stop) return void (this.#isStopped = true);
    this.#isStopped = false;
    this.#show("row", { role: "user", text });
    this.#show("busy", { busy: true });
    await this.#run(text);
    this.#show("busy", { busy: false });
  }

  async #run(text) {
    const [word, ...others] = text.split(" ");
    const rest = others.join(" ");
    const says = (words) => this.#show("row", { role: "agent", text: words });
    if (word === "ask") {
      const answered = new Promise((done) => (this.#answered = done));
      this.#show("asks", { text: `May I write ${rest}?`, labels: ["Allow", "Deny"] });
      if ((await answered) !== "Allow") return says(`no note: ${rest}`);
      const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
      fs.writeFileSync(path.join(folder, "note.txt"), rest);
      return says(`the note is written: ${rest}`);
    }
    if (word !== "slow") return says(`you said ${text}`);
    says("");
    for (let n = 0; n < Number(rest) && !this.#isStopped; n += 1) {
      this.#show("more", { text: `word${n} ` });
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
    this.#show("more", { text: this.#isStopped ? "stopped" : "finished" });
  }
}

exports.activate = (context) => {
  const column = vscode.ViewColumn.One;
  const panel = vscode.window.createWebviewPanel("my-panel", "My panel", column, { enableScripts: true });
  const agent = new Agent(panel.webview);
  panel.webview.onDidReceiveMessage((told) => agent.hears(told));
  const page = fs.readFileSync(path.join(context.extensionPath, "panel.html"), "utf8");
  panel.webview.html = page.replaceAll("{nonce}", crypto.randomUUID());
  context.subscriptions.push(panel);
};
