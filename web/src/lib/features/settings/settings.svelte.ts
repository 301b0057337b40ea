// How this device likes to look and to be told. Kept in the browser, for this device alone.

export interface Settings {
  theme: "system" | "light" | "dark";
  density: "comfortable" | "compact";
  notify: boolean;
  sound: boolean;
  sidebar: boolean;
  details: boolean;
  split: boolean;
}

const KEY = "farhelm.settings";
const STANDARD: Settings = {
  theme: "system",
  density: "comfortable",
  notify: false,
  sound: false,
  sidebar: true,
  details: true,
  split: false,
};

function kept(): Settings {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Settings>;
    return { ...STANDARD, ...stored };
  } catch {
    return { ...STANDARD };
  }
}

export const settings = $state<Settings>(kept());

export function change(more: Partial<Settings>): void {
  Object.assign(settings, more);
  applyLook(settings);
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // A browser that keeps nothing shows the change until it is closed.
  }
}

export function applyLook({ theme, density }: Settings): void {
  const { dataset } = document.documentElement;
  if (theme === "system") delete dataset.theme;
  else dataset.theme = theme;
  dataset.density = density;
}
