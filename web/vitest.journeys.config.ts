import { defineConfig } from "vitest/config";

const times = process.env.FARHELM_TIMES;

// The real binary and a real browser: one at a time, each with time to start.
export default defineConfig({
  test: {
    // Figures depend on what else the machine does, so they are asked for by themselves.
    include: [process.env.FARHELM_BENCH ? "journeys/**/*.bench.ts" : "journeys/**/*.journey.ts"],
    environment: "node",
    fileParallelism: false,
    reporters: times ? ["verbose", ["junit", { outputFile: times }]] : ["verbose"],
    // A busy machine is slow, not wrong.
    testTimeout: 180_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
