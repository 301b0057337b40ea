// Tells a person who looks elsewhere: the title, the icon's badge, a sound, a notification.
import { waiting } from "../../session/card";
import { commandOf } from "../../session/story";
import type { World } from "../../session/state";
import { t } from "../../text/en";
import { oneLine } from "../../text/plain";
import { toPrompt } from "../../ui/route.svelte";
import { agentName, titleOf } from "../sessions/words";
import { settings } from "../settings/settings.svelte";

/** The questions that waited when it was last looked at. */
let told: ReadonlySet<string> = new Set();
let isFirst = true;

export function attend(cards: World["cards"], isTold: boolean): void {
  const all = waiting(cards);
  document.title = all.length > 0 ? `(${all.length}) ${t.name}` : t.name;
  const badge = navigator as Navigator & { setAppBadge?: (n: number) => Promise<void> };
  void badge.setAppBadge?.(all.length).catch(() => undefined);
  const fresh = all.filter((prompt) => !told.has(prompt.prompt_id));
  const before = told;
  told = new Set(all.map((prompt) => prompt.prompt_id));
  // What waited before the page was opened is on screen, not news.
  if (isFirst) {
    isFirst = !isTold;
    return;
  }
  if ([...before].some((id) => !told.has(id))) void withdraw(told);
  if (fresh.length === 0) return;
  if (settings.sound) chime();
  if (!settings.notify || document.visibilityState === "visible") return;
  for (const prompt of fresh.slice(0, 3)) {
    const card = cards[prompt.session_id];
    if (!card) continue;
    const title = t.notifyTexts.prompt(`${agentName(card)} · ${titleOf(card)}`);
    const body = oneLine(commandOf(prompt.input) ?? prompt.prompt_text, 140);
    void notify(title, body, prompt.prompt_id, toPrompt(prompt.session_id, prompt.prompt_id));
  }
}

async function notify(title: string, body: string, tag: string, to: string): Promise<void> {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const data = { to: `/${to}` };
  const worker = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
  if (worker) await worker.showNotification(title, { body, tag, data, icon: "/icon-192.png" });
  else new Notification(title, { body, tag });
}

/** What was answered, here or elsewhere, is not asked any more. */
async function withdraw(open: ReadonlySet<string>): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
  for (const shown of (await worker?.getNotifications()) ?? []) {
    if (!open.has(shown.tag)) shown.close();
  }
}

/** Two quiet tones, made here: nothing is loaded. */
function chime(): void {
  try {
    const audio = new AudioContext();
    for (const [at, pitch] of [
      [0, 660],
      [0.14, 880],
    ] as const) {
      const tone = audio.createOscillator();
      const volume = audio.createGain();
      tone.frequency.value = pitch;
      volume.gain.setValueAtTime(0.06, audio.currentTime + at);
      volume.gain.exponentialRampToValueAtTime(0.0001, audio.currentTime + at + 0.25);
      tone.connect(volume).connect(audio.destination);
      tone.start(audio.currentTime + at);
      tone.stop(audio.currentTime + at + 0.3);
    }
    setTimeout(() => void audio.close(), 1_000);
  } catch {
    // Browsers refuse sounds before a person touched the page.
  }
}
