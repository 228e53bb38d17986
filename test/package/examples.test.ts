/** Every export of the public modules has a comment and an example that compiles and, if possible, runs. */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { DAY, defineJob, event, implement } from "../../core/index.ts";
import { replay, startUpstream, type Upstream } from "../../testing/index.ts";
import { type Example, examplesOf, exportsOf, MODULES } from "./exports.ts";

const FOLDER = ".build/examples";
const exported = (await Promise.all(Object.keys(MODULES).map(exportsOf))).flat();
const examples = (await Promise.all(Object.keys(MODULES).map(examplesOf))).flat();

/** Examples that cannot be run by themselves. */
const COMPILED_ONLY = ["runWorker"];

const fileOf = ({ of }: Example, i: number) => `${i}-${of.replace(".", "-")}.ts`;

/** What the examples use without declaring it. */
const CAST = "test/package/examples/cast.ts";

/** The source of a module whose default export runs the example. */
async function moduleOf({ code }: Example): Promise<string> {
  const declares = (name: string) => new RegExp(`\\b(const|let|function|class) ${name}\\b`).test(code);
  const lines = ['import * as z from "zod";', 'import type { Context as Ctx } from "../../core/index.ts";'];
  for (const [module, path] of Object.entries(MODULES)) {
    const names = exported.filter((each) => each.module === module && !declares(each.name));
    const list = names.map(({ name, isType }) => (isType ? `type ${name}` : name));
    lines.push(`import { ${list.join(", ")} } from "../../${path}";`);
  }
  const cast = await readFile(CAST, "utf8");
  const known = [...cast.matchAll(/^export (?:const|async function|function) (\w+)/gm)].map(([, name = ""]) => name);
  const list = known.filter((name) => !declares(name));
  lines.push(`import { ${list.join(", ")} } from "../../${CAST}";`);
  const body = code.replace(/^export default /gm, "void ").replace(/^export /gm, "");
  return `${lines.join("\n")}\n\nexport default async function example(ctx: Ctx) {\n${body}\n}\n`;
}

test.each(exported)("$module $name has a comment", ({ doc }) => {
  expect(doc.replace(/@example[\s\S]*/, "").trim()).not.toBe("");
});

test("each export has an example", () => {
  const shown = new Set(examples.map(({ of }) => of));
  expect(exported.map(({ name }) => name).filter((name) => !shown.has(name))).toEqual([]);
});

/** The definition of the job that runs examples with a context. */
const budget = { tokens: { limit: 100_000 } };
const events = [event({ name: "price.changed", payload: z.object({ price: z.number() }) })];
const job = defineJob({ kind: "example", args: z.object({}), id: () => "example", budget, events });

describe("the examples", () => {
  let site: Upstream;
  beforeAll(async () => {
    await rm(FOLDER, { recursive: true, force: true });
    await mkdir(FOLDER, { recursive: true });
    for (const [i, example] of examples.entries()) {
      await writeFile(join(FOLDER, fileOf(example, i)), await moduleOf(example));
    }
    site = await startUpstream();
    site.answers({ headers: { "content-type": "text/html" }, body: "<title>A page</title>" });
    process.env.EXAMPLE_URL = site.url;
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  test("compile", { timeout: 300_000 }, async () => {
    const options = { noUnusedLocals: false, noUnusedParameters: false };
    await writeFile(
      join(FOLDER, "tsconfig.json"),
      JSON.stringify({ extends: "../../tsconfig.json", compilerOptions: options, include: ["*.ts"], exclude: [] }),
    );
    const { exitCode, stdout } = await execa("tsc", ["-p", FOLDER], { preferLocal: true, reject: false });
    expect(exitCode, stdout).toBe(0);
  });

  const run = examples.map((example, i) => ({ ...example, i })).filter(({ of }) => !COMPILED_ONLY.includes(of));
  test.each(run)("of $of runs", { timeout: 300_000 }, async ({ i, ...example }) => {
    const path = pathToFileURL(join(process.cwd(), FOLDER, fileOf(example, i))).href;
    const { default: body } = await import(/* @vite-ignore */ path);
    // An example with a context is a durable function, which is killed and replayed at every point.
    if (!example.code.includes("ctx.")) return void (await body());
    const durable = async (ctx: unknown) => {
      await body(ctx);
      return "done";
    };
    const answers = { "go on": { yes: true }, ok: { yes: true }, approve: { approved: true } };
    const around = {
      answers,
      callbacks: { paid: { amount: 1 } },
      jobs: { report: "all is well" },
      deadline: 366 * DAY,
    };
    const { result } = await replay(implement(job, durable), {}, around);
    expect(result).toBe("done");
  });
});
