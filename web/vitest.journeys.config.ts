import { defineConfig } from "vitest/config";

// The real binary and a real browser: one at a time, each with time to start.
export default defineConfig({
  test: {
    include: ["journeys/**/*.journey.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ["verbose"],
  },
});
