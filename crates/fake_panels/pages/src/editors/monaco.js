// Monaco as VS Code's chat has it: no line numbers, wrapped, the edit context where it is known.
import * as monaco from "monaco-editor/editor/editor.main.js";

self.MonacoEnvironment = { getWorker: () => ({ postMessage() {}, addEventListener() {}, removeEventListener() {}, terminate() {} }) };

export function monacoEditor(host, attributes, chat) {
  host.style.height = "120px";
  const editor = monaco.editor.create(host, {
    value: "", language: "plaintext", lineNumbers: "off", minimap: { enabled: false },
    wordWrap: "on", folding: false, glyphMargin: false, automaticLayout: true,
    quickSuggestions: false, suggestOnTriggerCharacters: false, editContext: true,
    unicodeHighlight: { ambiguousCharacters: false, invisibleCharacters: false },
  });
  editor.onDidChangeModelContent(() => chat.editor && chat.changed());
  editor.onKeyDown((event) => {
    if (event.keyCode !== monaco.KeyCode.Enter || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    chat.send(event.browserEvent);
  });
  host.addEventListener("paste", (event) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    chat.pasted(event.clipboardData.files);
  }, true);
  return {
    element: host,
    text: () => editor.getValue(),
    set: (text) => editor.setValue(text),
    clear: () => editor.setValue(""),
  };
}
