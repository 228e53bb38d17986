/** `deploy`: the project's edge to Cloudflare, by wrangler. */
import { dirname, join } from "node:path";
import { execa } from "execa";
import { resolveModule } from "../launcher/package.ts";
import { configurationOf, readProject, typed } from "../launcher/project.ts";
import { buildPages } from "../pages/build.ts";

const usage = () => `Usage: ${typed(readProject(), "deploy", "[options]")}

Deploys the edge of the project in this folder to Cloudflare. Options go to wrangler; those that matter most:

  --dry-run            bundle it and show what it would be given, and upload nothing
  --secrets-file FILE  set the secrets in it
  --help               show this text
`;

export async function run(args: string[]): Promise<void> {
  if (args.includes("--help")) return console.log(usage());
  configurationOf(readProject());
  await buildPages(readProject().root);
  const wrangler = join(dirname(resolveModule("wrangler/package.json", process.cwd())), "bin/wrangler.js");
  const { exitCode } = await execa(process.execPath, [wrangler, "deploy", ...args], {
    stdio: "inherit",
    reject: false,
  });
  process.exitCode = exitCode ?? 1;
}
