import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { COMPILE_CACHE } from "./cli/package.ts";

// Shared by the processes that run test files, and by those that they start.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;

/** Files that take a minute or more, which would otherwise run alone at the end. */
const SLOWEST =
  /package\/package|cli\/deploy|tasks\/asked\/who-answers|wrap\/crash|worker\/crash\/(newer-server|outage)|auth\/quota|dispatch\/unhandled/;

/** What runs on each standalone server. */
const STANDALONE = [
  "test/e2e/{gathering,timers,waiting}.test.ts",
  "test/contract/**/*.test.ts",
  "test/server/{differential,real-differential}.test.ts",
  "test/operate/server.test.ts",
];

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification) => Number(SLOWEST.test(moduleId));
    return (await super.sort(files)).toSorted((a, b) => isSlow(b) - isSlow(a));
  }
}

export default defineConfig({
  test: {
    projects: [
      // Tests beside the code.
      {
        extends: true,
        test: {
          name: "unit",
          include: ["{core,tools,functions,pages,worker,wrap,server,cli,testing,docs}/**/*.test.ts"],
        },
      },
      // Tests of the whole, each file with its own processes.
      { extends: true, test: { name: "system", include: ["{test,lab}/**/*.test.ts"] } },
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
          include: ["test/e2e/tools.test.ts", "test/auth/shared.test.ts", "test/operate/server.test.ts"],
          env: { RESONATE_HOST: "object" },
        },
      },
      {
        extends: true,
        test: {
          name: "runner",
          include: ["test/e2e/gathering.test.ts", "test/tasks/{cancel,client}.test.ts"],
          env: { RESONATE_HOST: "object", RESONATE_RUNNER: "1" },
        },
      },
      // The standalone server at RESONATE_URL, without the files that start an embedded server of their own. The two releases
      // take turns: what clients ask and tasks are on 0.9.8, what workers do is on the next. `npm run servers` runs all on both.
      {
        extends: true,
        test: {
          name: "released",
          include: [
            ...STANDALONE,
            "test/e2e/{tools,restart,foreign}.test.ts",
            "test/tasks/**/*.test.ts",
            "test/cli/keys.test.ts",
          ],
          exclude: [...configDefaults.exclude, "test/tasks/{crash,retention}.test.ts"],
        },
      },
      // The release after 0.9.8, which differs in what times out, and in which jobs may wait for others.
      {
        extends: true,
        test: {
          name: "next",
          include: [
            ...STANDALONE,
            "test/worker/{crash,dispatch}/*.test.ts",
            "test/worker/jobs/cancelled.test.ts",
            "test/tasks/{range,cancel-range}.test.ts",
            "test/cli/doctor-resonate.test.ts",
          ],
          // It imitates a server of its own.
          exclude: [...configDefaults.exclude, "test/worker/crash/newer-server.test.ts"],
        },
      },
    ],
    // Tests of what `new` makes, where they run.
    exclude: [...configDefaults.exclude, "cli/template/**"],
    sequence: { sequencer: SlowestFirst },
    // A process runs many files, because none leaves anything behind in it: starting one and loading the same modules again is
    // a quarter of the processors' time.
    isolate: false,
    globalSetup: ["test/support/setup.ts"],
    // Files wait for the processes that they start more than they compute.
    maxWorkers: 6,
    // It imports JSON as bundlers take it and Node does not.
    deps: { optimizer: { ssr: { enabled: true, include: ["@actions/workflow-parser"] } } },
    // It only ends what hangs: tests start whole stacks, on machines that do other things as well.
    testTimeout: 90_000,
    hookTimeout: 90_000,
  },
});
