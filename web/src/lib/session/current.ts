// The one app of this page, for the components.
import { App } from "./app.svelte";

export const app = new App();
