// A plain web chat, for the editor alone.
import { start } from "../chat.js";
import { prosemirror } from "../editors/prosemirror.js";
import { plainSkin } from "../plain.js";

start(plainSkin("prosemirror", prosemirror));
