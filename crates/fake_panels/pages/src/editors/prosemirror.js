// ProseMirror with paragraphs and hard breaks.
import { baseKeymap, chainCommands, exitCode } from "prosemirror-commands";
import { history } from "prosemirror-history";
import { keymap } from "prosemirror-keymap";
import { Schema } from "prosemirror-model";
import { EditorState } from "prosemirror-state";
import { EditorView } from "prosemirror-view";

const schema = new Schema({
  nodes: {
    doc: { content: "paragraph+" },
    paragraph: { content: "inline*", group: "block", parseDOM: [{ tag: "p" }], toDOM: () => ["p", 0] },
    text: { group: "inline" },
    hard_break: {
      inline: true, group: "inline", selectable: false, parseDOM: [{ tag: "br" }], toDOM: () => ["br"],
    },
  },
});

export function prosemirror(host, attributes, chat) {
  const documentOf = (text) => schema.node("doc", null, text.split("\n").map(
    (line) => schema.node("paragraph", null, line ? [schema.text(line)] : [])));
  const breakLine = chainCommands(exitCode, (state, dispatch) => {
    dispatch?.(state.tr.replaceSelectionWith(schema.nodes.hard_break.create()).scrollIntoView());
    return true;
  });
  const plugins = [
    keymap({ Enter: () => (chat.send(window.event), true), "Shift-Enter": breakLine }),
    keymap(baseKeymap),
    history(),
  ];
  const view = new EditorView(host, {
    state: EditorState.create({ doc: documentOf(""), plugins }),
    attributes: { role: "textbox", style: "white-space: pre-wrap; overflow: auto; min-height: 40px; max-height: 120px", ...attributes },
    dispatchTransaction(transaction) {
      view.updateState(view.state.apply(transaction));
      if (chat.editor) chat.changed();
    },
    handlePaste(_, event) {
      const files = event.clipboardData?.files ?? [];
      if (files.length === 0) return false;
      chat.pasted(files);
      return true;
    },
  });
  const set = (text) => {
    const { tr, doc } = view.state;
    view.dispatch(tr.replaceWith(0, doc.content.size, documentOf(text).content));
  };
  const text = () => view.state.doc.textBetween(0, view.state.doc.content.size, "\n", "\n");
  return { element: view.dom, text, set, clear: () => set("") };
}
