// The page's shell while there is no connection: its own files only, never what sessions say.
const SHELF = "farhelm-shell-1";
// A file is the same however it is asked for.
const ANY = { ignoreVary: true };
// Old builds leave files behind; beyond this many the shelf is cleared.
const FILES_MAX = 80;

self.addEventListener("install", (event) => {
  event.waitUntil(stock());
  self.skipWaiting();
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== self.location.origin) return;
  if (url.pathname === "/") event.respondWith(newest(event.request));
  else if (url.pathname.startsWith("/assets/")) event.respondWith(kept(event.request));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const to = event.notification.data?.to ?? "/";
  event.waitUntil(
    self.clients.matchAll({ type: "window" }).then((open) => {
      const first = open[0];
      if (!first) return self.clients.openWindow(to);
      first.postMessage({ go: to });
      return first.focus();
    }),
  );
});

/** The page and what it names: the first visit loads them before this worker could see it. */
async function stock() {
  const shelf = await caches.open(SHELF);
  const answer = await fetch("/", { cache: "no-cache" });
  if (!answer.ok) throw new Error("There is no page to keep");
  const names = (await answer.clone().text()).match(/\/assets\/[\w.-]+/g) ?? [];
  await shelf.addAll([...new Set(names)].slice(0, FILES_MAX));
  await shelf.put("/", answer);
}

async function newest(request) {
  const shelf = await caches.open(SHELF);
  try {
    const answer = await fetch(request);
    if (answer.ok) await shelf.put("/", answer.clone());
    return answer;
  } catch {
    return (await shelf.match("/", ANY)) ?? Response.error();
  }
}

async function kept(request) {
  const shelf = await caches.open(SHELF);
  const found = await shelf.match(request, ANY);
  if (found) return found;
  const answer = await fetch(request);
  if (answer.ok) {
    const names = await shelf.keys();
    if (names.length >= FILES_MAX) await Promise.all(names.map((name) => shelf.delete(name)));
    await shelf.put(request, answer.clone());
  }
  return answer;
}
