// Lexical with its own plugins for plain or rich text.
import { createEmptyHistoryState, registerHistory } from "@lexical/history";
import { registerPlainText } from "@lexical/plain-text";
import { registerRichText } from "@lexical/rich-text";
import {
  $createLineBreakNode, $createParagraphNode, $createTextNode, $getRoot,
  COMMAND_PRIORITY_HIGH, KEY_ENTER_COMMAND, PASTE_COMMAND, createEditor,
} from "lexical";
import { h } from "../page.js";

export function lexical(host, attributes, chat, { rich = false } = {}) {
  const element = h("div", {
    contenteditable: "true",
    role: "textbox",
    style: "white-space: pre-wrap; overflow: auto; min-height: 40px; max-height: 120px",
    ...attributes,
  });
  host.append(element);
  const editor = createEditor({ namespace: "composer", onError: (error) => { throw error; } });
  editor.setRootElement(element);
  (rich ? registerRichText : registerPlainText)(editor);
  registerHistory(editor, createEmptyHistoryState(), 300);
  editor.registerCommand(KEY_ENTER_COMMAND, (event) => {
    if (!event || event.shiftKey) return false;
    event.preventDefault();
    chat.send(event);
    return true;
  }, COMMAND_PRIORITY_HIGH);
  editor.registerCommand(PASTE_COMMAND, (event) => {
    const files = event.clipboardData?.files ?? [];
    if (files.length === 0) return false;
    event.preventDefault();
    chat.pasted(files);
    return true;
  }, COMMAND_PRIORITY_HIGH);
  editor.registerUpdateListener(() => chat.editor && chat.changed());
  // Paragraphs are lines to whoever reads the message.
  const text = () => editor.getEditorState().read(
    () => $getRoot().getChildren().map((child) => child.getTextContent()).join("\n"));
  const set = (value) => editor.update(() => {
    const paragraph = $createParagraphNode();
    value.split("\n").forEach((line, index) => {
      if (index > 0) paragraph.append($createLineBreakNode());
      if (line) paragraph.append($createTextNode(line));
    });
    $getRoot().clear().append(paragraph);
  }, { discrete: true });
  set("");
  return { element, text, set, clear: () => set("") };
}
