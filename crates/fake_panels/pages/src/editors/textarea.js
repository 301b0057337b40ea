// A controlled React 18 textarea, as chat panels have it.
import { createElement, useState } from "react";
import { createRoot } from "react-dom/client";
import { flushSync } from "react-dom";

export function textarea(host, attributes, chat) {
  let value = "";
  let show;
  function Composer() {
    const [text, setText] = useState("");
    value = text;
    show = setText;
    return createElement("textarea", {
      ...attributes,
      value: text,
      rows: 4,
      onChange: (event) => {
        value = event.target.value;
        setText(value);
        chat.changed();
      },
      onKeyDown: (event) => {
        if (event.key !== "Enter" || event.shiftKey) return;
        event.preventDefault();
        chat.send(event.nativeEvent);
      },
      onPaste: (event) => chat.pasted(event.clipboardData.files),
    });
  }
  flushSync(() => createRoot(host).render(createElement(Composer)));
  const set = (text) => (flushSync(() => show(text)), (value = text), chat.changed());
  return { element: host.firstChild, text: () => value, set, clear: () => set("") };
}
