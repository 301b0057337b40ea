// Where the person is: in the address, so that back, forward and links work.

export type Route =
  | { view: "list" }
  /** A session, and the question in it that a link leads to. */
  | { view: "session"; id: string; prompt: string | null }
  | { view: "settings" };

export function routeOf(hash: string): Route {
  const found = /^#\/s\/([A-Za-z0-9_-]{3,64})(?:\/p\/([^/]{1,1000}))?$/.exec(hash);
  if (found?.[1]) return { view: "session", id: found[1], prompt: unescaped(found[2]) };
  return hash === "#/settings" ? { view: "settings" } : { view: "list" };
}

function unescaped(text: string | undefined): string | null {
  try {
    return text ? decodeURIComponent(text) : null;
  } catch {
    return null;
  }
}

const read = () => routeOf(location.hash);

class Place {
  route = $state.raw<Route>(read());

  constructor() {
    addEventListener("hashchange", () => (this.route = read()));
  }

  go(hash: string): void {
    if (location.hash !== hash) location.hash = hash;
  }
}

export const place = new Place();
export const toSession = (id: string) => `#/s/${id}`;
export const toPrompt = (id: string, prompt: string) =>
  `${toSession(id)}/p/${encodeURIComponent(prompt)}`;
