import { mount } from "svelte";
import "./app.css";
import Root from "./Root.svelte";
import { applyLook, settings } from "./lib/features/settings/settings.svelte";

applyLook(settings);
mount(Root, { target: document.getElementById("app") ?? document.body });

if ("serviceWorker" in navigator && import.meta.env.PROD) {
  // Without it there is no shell while offline; nothing else depends on it.
  void navigator.serviceWorker.register("/sw.js").catch(() => undefined);
}
