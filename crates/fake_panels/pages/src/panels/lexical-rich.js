// A plain web chat, for the editor alone.
import { start } from "../chat.js";
import { lexical } from "../editors/lexical.js";
import { plainSkin } from "../plain.js";

start(plainSkin("lexical-rich", (...all) => lexical(...all, { rich: true })));
