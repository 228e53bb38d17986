import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { COMPILE_CACHE } from "./cli/package.ts";

// All processes share this cache: those that run test files, and those that tests start.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;

/** Test files that take a minute or more. They run first, so that none of them runs alone at the end. */
const SLOWEST =
  /package\/package|cli\/deploy|tasks\/questions\/who-answers|wrap\/crash|worker\/crash\/(newer-server|outage)|auth\/quota|dispatch\/unhandled/;

/** What `npm test` runs of the whole system: each way through it once. `npm run test:all` runs the rest. */
const CORE = [
  "test/docs.test.ts",
  "test/e2e/{gathering,client,faults,progress,restart}.test.ts",
  "test/tasks/task.test.ts",
  "test/events/{poll,labels}.test.ts",
  "test/wrap/everything.test.ts",
  "test/files/files.test.ts",
  "test/auth/{bearer,flow,sign-in}.test.ts",
  "test/pages/front.test.ts",
];

/** The test files that run on each standalone server. */
const STANDALONE = [
  "test/e2e/{gathering,timers,waiting}.test.ts",
  "test/contract/**/*.test.ts",
  "test/server/{differential,standalone-differential}.test.ts",
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
          include: ["{client,core,features,tools,functions,pages,worker,wrap,server,cli,testing,docs}/**/*.test.ts"],
        },
      },
      // Tests of the whole system. Each file starts its own processes.
      { extends: true, test: { name: "core", include: CORE } },
      {
        extends: true,
        test: { name: "system", include: ["test/**/*.test.ts"], exclude: [...configDefaults.exclude, ...CORE] },
      },
      // The embedded server in a Durable Object. RESONATE_HOST=object runs any other suite on it as well.
      {
        extends: true,
        test: {
          name: "object",
          include: ["test/contract/**/*.test.ts", "test/server/{crash,http,size}.test.ts"],
          env: { RESONATE_HOST: "object" },
        },
      },
      // One account: edge, object, and worker or runner, as in wrangler.toml. The variables work for other suites as well.
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
      // The standalone server at RESONATE_URL, without the files that start their own embedded server. The suites are divided
      // between two releases: clients and tasks run on 0.9.8, workers on the next release. `npm run servers` runs all on both.
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
      // The release after 0.9.8, which has other rules for time-outs, and for which jobs may wait for others.
      {
        extends: true,
        test: {
          name: "next",
          include: [
            ...STANDALONE,
            "test/worker/{crash,dispatch}/*.test.ts",
            "test/worker/jobs/{calls,cancelled}.test.ts",
            "test/tasks/{range,cancel-range}.test.ts",
            "test/cli/{doctor-resonate,operate}.test.ts",
          ],
          // This file imitates a server itself.
          exclude: [...configDefaults.exclude, "test/worker/crash/newer-server.test.ts"],
        },
      },
    ],
    // The tests in the template run in the projects that `new` makes.
    exclude: [...configDefaults.exclude, "cli/template/**"],
    sequence: { sequencer: SlowestFirst },
    // A process runs many files, because none leaves state behind. A process for each file would load the same modules again,
    // which takes a quarter of the processor time.
    isolate: false,
    globalSetup: ["test/support/setup.ts"],
    // More than there are processors: test files mostly wait for the processes that they start. Vitest's option --maxWorkers has
    // no effect, because each project inherits this value.
    maxWorkers: Number(process.env.VITEST_MAX_WORKERS ?? 6),
    // This package imports JSON in a way that only bundlers accept.
    deps: { optimizer: { ssr: { enabled: true, include: ["@actions/workflow-parser"] } } },
    // Long, to end only tests that hang: tests start whole stacks, perhaps on a busy machine.
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
