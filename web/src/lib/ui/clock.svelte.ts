// The time, as often as something on screen shows it.

class Clock {
  now = $state(Date.now());

  constructor() {
    setInterval(() => {
      if (document.visibilityState === "visible") this.now = Date.now();
    }, 1_000);
    document.addEventListener("visibilitychange", () => (this.now = Date.now()));
  }
}

export const clock = new Clock();
