// A page's half of webchannel on WebCrypto and OpenSSL: none of this project's code.
// node --experimental-websocket webchannel_node.mjs WS_URL CODE
import { createCipheriv, createDecipheriv, webcrypto } from "node:crypto";

const [url, code] = process.argv.slice(2);
const { subtle } = webcrypto;
const socket = new WebSocket(url);
const heard = [];
let wake = () => {};
socket.addEventListener("message", ({ data }) => {
  heard.push(JSON.parse(data));
  wake();
});
await new Promise((done, fail) => {
  socket.addEventListener("open", done);
  socket.addEventListener("error", () => fail(new Error("the socket did not open")));
});

async function until(kind) {
  for (;;) {
    const at = heard.findIndex((it) => it.type === kind || it.type === "error");
    if (at >= 0) return heard.splice(0, at + 1);
    await new Promise((done) => (wake = done));
  }
}
const say = (type, payload, more = {}) =>
  socket.send(JSON.stringify({ v: 1, type, session_id: "default", ...more, payload }));

const pair = await subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]);
const raw = Buffer.from(await subtle.exportKey("raw", pair.publicKey));
say("pairing_request", { pairing_code: code, client_pub: raw.toString("base64url") });
const paired = (await until("pairing_result")).pop();
if (paired.type === "error") throw new Error(paired.payload.message);
const theirs = await subtle.importKey(
  "raw", Buffer.from(paired.payload.e2e.agent_pub, "base64url"), { name: "X25519" }, true, []);
const shared = Buffer.from(
  await subtle.deriveBits({ name: "X25519", public: theirs }, pair.privateKey, 256));
const key = Buffer.from(
  await subtle.digest("SHA-256", Buffer.concat([Buffer.from("webchannel-e2e-v1"), shared])));

function seal(matter) {
  const nonce = webcrypto.getRandomValues(new Uint8Array(12));
  const cipher = createCipheriv("chacha20-poly1305", key, nonce, { authTagLength: 16 });
  const body = Buffer.concat(
    [cipher.update(JSON.stringify(matter), "utf8"), cipher.final(), cipher.getAuthTag()]);
  return {
    nonce: Buffer.from(nonce).toString("base64url"), ciphertext: body.toString("base64url"),
  };
}
function open({ nonce, ciphertext }) {
  const body = Buffer.from(ciphertext, "base64url");
  const decipher = createDecipheriv(
    "chacha20-poly1305", key, Buffer.from(nonce, "base64url"), { authTagLength: 16 });
  decipher.setAuthTag(body.subarray(-16));
  return JSON.parse(
    Buffer.concat([decipher.update(body.subarray(0, -16)), decipher.final()]).toString("utf8"));
}

const { access_token } = paired.payload;
const e2e = seal({ content: "say: Grüße 😀 from Node", sender_id: "ui-1" });
say("user_message", { access_token, e2e }, { request_id: "m-1" });
const told = await until("assistant_final");
const words = (kind) =>
  told.filter((it) => it.type === kind).map((it) => open(it.payload.e2e).content);
say("user_message", { access_token, e2e }, { request_id: "m-2" });
const again = (await until("error")).pop();
console.log(JSON.stringify({
  alg: paired.payload.e2e.alg,
  own: words("user_message"),
  chunks: words("assistant_chunk").join(""),
  final: words("assistant_final"),
  replay: [again.request_id, again.payload.code],
}));
socket.close();
