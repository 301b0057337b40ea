// A plain web chat, for the editor alone.
import { start } from "../chat.js";
import { plaintext } from "../editors/plaintext.js";
import { plainSkin } from "../plain.js";

start(plainSkin("plaintext", plaintext));
