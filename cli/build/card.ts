/** Builds a job's card for chats: one file without references, because hosts load nothing else. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BuildOptions } from "esbuild";

const FOLDER = "pages/card";

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
