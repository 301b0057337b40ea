import { svelte } from "@sveltejs/vite-plugin-svelte";
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";
import { compressed } from "./build/compressed.ts";

// Where `cargo xtask dev` finds the relay whose sockets and API the page under work uses.
const relay = process.env.FARHELM_URL ?? "http://127.0.0.1:4780";
const proxied = { target: relay, changeOrigin: true, headers: { origin: relay } };

const manifest = new URL("../Cargo.toml", import.meta.url);
const version = /^version = "(.*)"/m.exec(readFileSync(manifest, "utf8"))?.[1] ?? "unknown";

export default defineConfig({
  define: { __VERSION__: JSON.stringify(version) },
  plugins: [svelte(), compressed()],
  build: {
    target: "es2022",
    // Nothing inline: the page is served under a policy that forbids it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: {
    host: "127.0.0.1",
    proxy: { "/v1": proxied, "/ws": { ...proxied, ws: true } },
  },
});
