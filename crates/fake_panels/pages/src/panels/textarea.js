// A plain web chat with a textarea. No agent's: for the editor alone.
import { start } from "../chat.js";
import { textarea } from "../editors/textarea.js";
import { plainSkin } from "../plain.js";

start(plainSkin("textarea", textarea));
