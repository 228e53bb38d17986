/** Builds a job's card for chats: one file without references, because hosts load nothing else. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BuildOptions } from "esbuild";

const FOLDER = "pages/card";

/** The program that draws charts in cards. @throws {Error} with esbuild's message, if it does not compile */
export async function cardChart(esbuild: typeof import("esbuild"), options: BuildOptions): Promise<string> {
  const entryPoints = [`${FOLDER}/chart.ts`];
  const { outputFiles } = await esbuild.build({ ...options, format: "iife", entryPoints, write: false });
  return outputFiles?.[0]?.text ?? "";
}

/** @throws {Error} with esbuild's message, if the card does not compile */
export async function cardOf(esbuild: typeof import("esbuild"), options: BuildOptions): Promise<string> {
  const built = await esbuild.build({
    ...options,
    entryPoints: [`${FOLDER}/main.tsx`, `${FOLDER}/card.css`],
    outdir: "out",
    write: false,
  });
  const textOf = (ending: string) => built.outputFiles?.find(({ path }) => path.endsWith(ending))?.text ?? "";
  const page = await readFile(join(options.absWorkingDir ?? "", FOLDER, "card.html"), "utf8");
  return page
    .replace("<style></style>", () => `<style>${textOf(".css")}</style>`)
    .replace('<script type="module"></script>', () => `<script type="module">${textOf(".js")}</script>`);
}
