import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

/** What a file imports, and whether the linter refuses it. */
const ARROWS: readonly (readonly [file: string, imports: string, isRefused: boolean])[] = [
  ["core/index.ts", "./jobs/job.ts", false],
  ["core/index.ts", "../worker/run.ts", true],
  ["core/jobs/a.ts", "../tools/tool.ts", false],
  ["core/jobs/a.ts", "../../tools/index.ts", true],
  ["core/jobs/a.ts", "../../functions/app.ts", true],
  ["core/jobs/a.ts", "../../infra/launcher/package.ts", true],
  ["core/jobs/a.test.ts", "../../infra/testing/simulation.ts", false],
  ["core/jobs/a.ts", "@modelcontextprotocol/server", true],
  ["core/tools/mcp.ts", "@modelcontextprotocol/server", false],
  ["core/tools/mcp.ts", "../../tools/index.ts", true],
  ["functions/app/app.ts", "../core/index.ts", false],
  ["functions/app/app.ts", "./tools/index.ts", false],
  ["functions/app/app.ts", "../tools/index.ts", true],
  ["functions/app/app.ts", "../worker/run.ts", true],
  ["functions/index.ts", "../tools/index.ts", false],
  ["functions/index.ts", "../infra/launcher/edge.ts", true],
  ["functions/mcp/a.ts", "../tools/index.ts", false],
  ["functions/mcp/a.ts", "../../tools/index.ts", true],
  ["functions/mcp/a.ts", "../../infra/launcher/edge.ts", true],
  ["functions/mcp/a.ts", "@modelcontextprotocol/server", true],
  ["functions/mcp/sdk.ts", "@modelcontextprotocol/server", false],
  ["functions/mcp/sdk.ts", "../../tools/index.ts", true],
  ["worker/process/run-worker.ts", "../core/index.ts", false],
  ["worker/process/run-worker.ts", "../tools/runs.ts", true],
  ["worker/process/run-worker.ts", "../functions/app.ts", true],
  ["worker/process/run-worker.ts", "../infra/launcher/edge.ts", true],
  ["worker/main.ts", "../tools/runs.ts", false],
  ["worker/main.ts", "../functions/app.ts", true],
  ["tools/index.ts", "../core/index.ts", false],
  ["tools/index.ts", "./timer/timer.ts", false],
  ["tools/index.ts", "../core/jobs/job.ts", true],
  ["tools/timer/a.ts", "../../core/index.ts", false],
  ["tools/timer/a.ts", "../../core/resonate/client.ts", true],
  ["tools/timer/a.ts", "../../functions/edge.ts", true],
  ["tools/timer/a.ts", "../../worker/index.ts", true],
  ["tools/timer/a.ts", "../../infra/launcher/local.ts", true],
  ["tools/timer/a.ts", "../../infra/testing/index.ts", true],
  ["tools/timer/a.test.ts", "../../infra/testing/index.ts", false],
  ["tools/timer/a.test.ts", "../../infra/launcher/edge.ts", true],
  ["tools/weather/sample-archive/a.ts", "../../../core/resonate/client.ts", true],
  ["functions/mcp/a.ts", "../../wrap/index.ts", true],
  ["wrap/a.ts", "../core/jobs/job.ts", false],
  ["wrap/a.ts", "../infra/launcher/local.ts", true],
  ["wrap/a.ts", "./worker/index.ts", true],
  ["wrap/a.ts", "node:fs", true],
  ["wrap/a.ts", "@modelcontextprotocol/client", true],
  ["wrap/worker/a.ts", "../index.ts", false],
  ["wrap/worker/a.ts", "node:fs", false],
  ["wrap/worker/a.ts", "../../worker/run.ts", true],
  ["wrap/worker/keeper/a.ts", "../errors.ts", false],
  ["wrap/worker/keeper/a.ts", "../../job.ts", true],
  ["wrap/worker/keeper/a.ts", "../../../worker/run.ts", true],
  ["cli/wrap/a.ts", "../../wrap/worker/index.ts", false],
  ["cli/launcher/a.ts", "../../worker/run.ts", false],
  ["cli/launcher/a.ts", "../../tools/index.ts", true],
  ["server/node/a.ts", "../../../tools/index.ts", true],
  ["cli/launcher/a.ts", "../../test/support/stack.ts", true],
  ["test/e2e/a.test.ts", "../../tools/timer/timer.ts", false],
];

/** The ways to name a module. */
const FORMS = [
  (path: string) => `import { a } from "${path}";\nexport { a as b };\n`,
  (path: string) => `import type { A } from "${path}";\nexport type { A as B };\n`,
  (path: string) => `export * from "${path}";\n`,
  (path: string) => `export const a = await import("${path}");\n`,
];

describe("the linter", () => {
  let root: string;
  /** The files that it refuses because of what they import. */
  let refused: Set<string>;
  const place = (i: number, form: number, file: string) => join(`${i}-${form}`, file);

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "arrows-"));
    const { vcs: _vcs, ...config } = JSON.parse(await readFile("biome.json", "utf8"));
    const paths = [];
    for (const [i, [file, imports]] of ARROWS.entries()) {
      for (const [form, write] of FORMS.entries()) {
        const path = join(root, place(i, form, file));
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, write(imports));
        paths.push(place(i, form, file));
      }
    }
    // Each file lies in a tree of its own, as the rules name places in one.
    for (const override of config.overrides) override.includes = override.includes.map((glob: string) => inTree(glob));
    await writeFile(join(root, "biome.json"), JSON.stringify(config));
    const biome = join(process.cwd(), "node_modules/.bin/biome");
    const { stdout } = await execa(biome, ["lint", "--reporter=json", "--max-diagnostics=none", "."], {
      cwd: root,
      reject: false,
    });
    const { diagnostics } = JSON.parse(stdout) as { diagnostics: { category: string; location: { path: unknown } }[] };
    const places = diagnostics
      .filter(({ category }) => category === "lint/style/noRestrictedImports")
      .map(({ location }) => JSON.stringify(location.path));
    refused = new Set(paths.filter((path) => places.some((place) => place.includes(path))));
  });
  afterAll(() => rm(root, { recursive: true, force: true }));

  test.each(ARROWS.map((arrow, i) => ({ i, file: arrow[0], imports: arrow[1], isRefused: arrow[2] })))(
    "$file importing $imports: refused is $isRefused",
    ({ i, file, isRefused }) => {
      const forms = FORMS.map((_write, form) => refused.has(place(i, form, file)));
      expect(forms).toEqual(FORMS.map(() => isRefused));
    },
  );
});

const inTree = (glob: string) => (glob.startsWith("!") ? `!*/${glob.slice(1)}` : `*/${glob}`);
