// What every test panel shares: switches of the address, elements, and telling the server.

const query = new URLSearchParams(location.search);
const mutations = new Set((query.get("mutate") ?? "").split(",").filter(Boolean));

export const option = (name) => query.get(name);
export const mutates = (name) => mutations.has(name);
export const instance = query.get("instance") ?? "panel";

// One after the other, so that the journal has the order in which things happened.
let told = Promise.resolve();

export function tell(kind, rest = {}) {
  const body = JSON.stringify({ instance, kind, ...rest });
  const post = () => fetch("/journal", { method: "POST", body, keepalive: body.length < 60000 });
  told = told.then(post).catch(() => {});
  return told;
}

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Does something again and again. Real panels are written to by their extension, whose clock goes
// on when nobody sees the panel; a frame's own timers would tick once a second then.
export function every(pause, does) {
  const clock = new Worker(`/clock.js?pause=${pause}`);
  clock.onmessage = () => does();
  return () => {
    clock.onmessage = null;
    clock.terminate();
  };
}
