/** Finds the source from which a new project installs this package. */
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { execa } from "execa";
import { isCheckout, thisPackage } from "../package.ts";
import { print } from "../terminal/print.ts";

/** The dependency for `package.json`; a tarball is copied into the project. */
interface Source {
  spec: string;
  tarball?: string;
}

/** The source that `--package` names, or else the source of this package: a packed checkout, a tarball, or a version. */
export async function sourceOf(spec: string | undefined): Promise<Source> {
  if (spec !== undefined) return /\.tgz$/.test(spec) ? fromTarball(resolve(spec)) : { spec };
  if (isCheckout) return fromTarball(await pack());
  return (await installedTarball()) ?? { spec: thisPackage().manifest.version };
}

function fromTarball(path: string): Source {
  if (!existsSync(path)) throw new Error(`${path} does not exist.`);
  return { spec: `file:vendor/${basename(path)}`, tarball: path };
}

async function pack(): Promise<string> {
  const { root } = thisPackage();
  const folder = join(root, ".build/package");
  await mkdir(folder, { recursive: true });
  print("Packing this checkout ...");
  const result = await execa("npm", ["pack", "--pack-destination", folder], { cwd: root, reject: false, all: true });
  if (result.failed) throw new Error(`The checkout cannot be packed:\n${result.all}`);
  return join(folder, String(result.stdout).trim().split("\n").at(-1) ?? "");
}

/** The tarball that this package was installed from, if its project names one. */
async function installedTarball(): Promise<Source | undefined> {
  const { root } = thisPackage();
  const project = dirname(dirname(root));
  const text = await readFile(join(project, "package.json"), "utf8").catch(() => "{}");
  const { dependencies = {} } = JSON.parse(text) as { dependencies?: Record<string, string> };
  const path = /^file:(.*\.tgz)$/.exec(dependencies["durable-mcp-edge"] ?? "")?.[1];
  const tarball = path === undefined ? undefined : resolve(project, path);
  return tarball !== undefined && existsSync(tarball) ? fromTarball(tarball) : undefined;
}
