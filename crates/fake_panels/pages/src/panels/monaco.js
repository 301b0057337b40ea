// A plain web chat, for the editor alone.
import { start } from "../chat.js";
import { monacoEditor } from "../editors/monaco.js";
import { plainSkin } from "../plain.js";

start(plainSkin("monaco", monacoEditor));
