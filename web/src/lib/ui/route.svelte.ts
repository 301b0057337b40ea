// Where the person is: in the address, so that back, forward and links work.

export type Route = { view: "list" } | { view: "session"; id: string } | { view: "settings" };

function read(): Route {
  const hash = location.hash;
  const session = /^#\/s\/([A-Za-z0-9_-]{3,64})$/.exec(hash)?.[1];
  if (session) return { view: "session", id: session };
  return hash === "#/settings" ? { view: "settings" } : { view: "list" };
}

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
