import { defineConfig } from "vitest/config";

const times = process.env.FARHELM_TIMES;

// The real binary and a real browser: one at a time, each with time to start.
export default defineConfig({
  test: {
    // Figures depend on what else the machine does, so they are asked for by themselves.
    include: [process.env.FARHELM_BENCH ? "journeys/**/*.bench.ts" : "journeys/**/*.journey.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: times ? ["verbose", ["junit", { outputFile: times }]] : ["verbose"],
    // As long as the browser is waited for: a busy machine is slow, not wrong.
    expect: { poll: { timeout: 30_000 } },
  },
});
