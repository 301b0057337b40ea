// A scripted agent for VS Code's own Chat: "ask LINE" wants to write a line to note.txt, "slow N"
// says N words one by one, everything else is said back with the model's name.
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

const MODELS = ["kite-small", "kite-large"].map((id) => ({
  id,
  name: id,
  family: "kite",
  version: "1",
  maxInputTokens: 8000,
  maxOutputTokens: 8000,
  capabilities: { toolCalling: true },
  isUserSelectable: true,
}));

const provider = {
  provideLanguageModelChatInformation: async () => MODELS,
  provideLanguageModelChatResponse: async (_model, _messages, _options, progress) =>
    progress.report(new vscode.LanguageModelTextPart("nothing to say")),
  provideTokenCount: async () => 1,
};

let written;

const note = {
  prepareInvocation: async ({ input }) => ({
    invocationMessage: "Writing a note",
    confirmationMessages: { title: "Write a note?", message: `The line is ${input.line}` },
  }),
  invoke: async ({ input }) => {
    const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
    fs.writeFileSync(path.join(folder, "note.txt"), input.line);
    written = input.line;
    return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart("written")]);
  },
};

const a_moment = (token) =>
  new Promise((done) => {
    const timer = setTimeout(done, 150);
    token.onCancellationRequested(() => {
      clearTimeout(timer);
      done();
    });
  });

async function answer(request, _context, stream, token) {
  const [word, ...others] = request.prompt.split(" ");
  const rest = others.join(" ");
  if (word === "ask") {
    const call = { input: { line: rest }, toolInvocationToken: request.toolInvocationToken };
    try {
      written = undefined;
      await vscode.lm.invokeTool("farhelm_note", call, token);
      // A tool that was skipped answers as well.
      stream.markdown(written === rest ? `the note is written: ${rest}` : `no note: ${rest}`);
    } catch (error) {
      stream.markdown(`no note: ${error.message}`);
    }
  } else if (word === "slow") {
    for (let n = 0; n < Number(rest) && !token.isCancellationRequested; n += 1) {
      stream.markdown(`word${n} `);
      await a_moment(token);
    }
    stream.markdown("finished");
  } else {
    stream.markdown(`you said ${request.prompt} to ${request.model.id}`);
  }
}

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.lm.registerLanguageModelChatProvider("farhelm", provider),
    vscode.lm.registerTool("farhelm_note", note),
    vscode.chat.createChatParticipant("farhelm.script", answer),
  );
  // A message that comes before this is never answered.
  fs.writeFileSync(path.join(vscode.workspace.workspaceFolders[0].uri.fsPath, "active"), "");
};
