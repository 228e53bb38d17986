import { configDefaults, defineConfig } from "vitest/config";
import { COMPILE_CACHE } from "./cli/package.ts";

// Each file is run by a process of its own, and starts others: none compiles what another has compiled.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "all",
          include: ["{core,tools,functions,pages,worker,wrap,server,cli,testing,infra,docs,test,lab}/**/*.test.ts"],
        },
      },
      // The embedded server's other host. RESONATE_HOST=object runs any other suite on it as well.
      {
        extends: true,
        test: {
          name: "object",
          include: ["test/contract/**/*.test.ts", "test/server/{crash,http,size}.test.ts"],
          env: { RESONATE_HOST: "object" },
        },
      },
      // One account: edge, object and worker, or runner, as wrangler.toml configures them. The same variables run the rest.
      {
        extends: true,
        test: {
          name: "account",
          include: ["test/e2e/tools.test.ts", "test/auth/shared.test.ts"],
          env: { RESONATE_HOST: "object" },
        },
      },
      {
        extends: true,
        test: {
          name: "runner",
          include: ["test/e2e/{gathering,logs}.test.ts", "test/tasks/{cancel,client}.test.ts"],
          env: { RESONATE_HOST: "object", RESONATE_RUNNER: "1" },
        },
      },
    ],
    // Tests of what `new` makes, where they run.
    exclude: [...configDefaults.exclude, "cli/template/**"],
    globalSetup: ["test/support/setup.ts"],
    // Most files start processes of their own and wait for them more than they compute.
    maxWorkers: 4,
    // It imports JSON as bundlers take it and Node does not.
    deps: { optimizer: { ssr: { enabled: true, include: ["@actions/workflow-parser"] } } },
    // It only ends what hangs: tests start whole stacks, on machines that do other things as well.
    testTimeout: 90_000,
    hookTimeout: 90_000,
  },
});
