import { defineConfig } from "vitest/config";

// Long, to end only tests that hang, as in the root.
export default defineConfig({ test: { testTimeout: 180_000, hookTimeout: 180_000 } });
