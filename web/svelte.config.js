import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";
import { readFileSync } from "node:fs";

const file = new URL("./src/lib/ui/breakpoints.json", import.meta.url);
const breakpoints = /** @type {Record<string, string>} */ (JSON.parse(readFileSync(file, "utf8")));

/** The widths at which the layout changes stand in one file; styles name them: `@media (--narrow)`. */
const namedWidths = {
  name: "named-widths",
  /** @param {{ content: string, filename?: string }} part */
  style: ({ content, filename }) => ({
    code: content.replace(/@media \((--[\w-]+)\)/g, (_, /** @type {string} */ name) => {
      const width = breakpoints[name];
      if (!width) throw new Error(`${filename ?? ""}: breakpoints.json has no ${name}`);
      return `@media ${width}`;
    }),
  }),
};

export default { preprocess: [namedWidths, vitePreprocess()] };
