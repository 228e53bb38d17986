import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/setup.ts"],
    // Most files start processes of their own and wait for them more than they compute.
    maxWorkers: 4,
    // It imports JSON as bundlers take it and Node does not.
    deps: { optimizer: { ssr: { enabled: true, include: ["@actions/workflow-parser"] } } },
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
