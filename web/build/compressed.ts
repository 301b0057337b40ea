// Writes each built file once more, as Brotli and as gzip: the relay sends what a browser takes
// and never compresses while it serves.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const WORTH_IT = /\.(html|js|css|svg|json|webmanifest|txt)$/;

export function compressed(): Plugin {
  let folder = "dist";
  return {
    name: "farhelm-compressed",
    apply: "build",
    configResolved(config) {
      folder = join(config.root, config.build.outDir);
      if (config.build.outDir.startsWith("/")) folder = config.build.outDir;
    },
    async closeBundle() {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      for (const entry of entries.filter((it) => it.isFile() && WORTH_IT.test(it.name))) {
        const path = join(entry.parentPath, entry.name);
        const whole = await readFile(path);
        const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
        await writeFile(`${path}.br`, brotliCompressSync(whole, { params }));
        await writeFile(`${path}.gz`, gzipSync(whole, { level: 9 }));
      }
    },
  };
}
