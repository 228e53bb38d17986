/** Installs a client into its own folder outside the checkout. */
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { execa } from "execa";
import type { MatrixClient } from "./matrix.ts";

const DRIVERS = join(import.meta.dirname, "drivers");
/** The limits of model vendors, which drivers in JavaScript import from beside them. */
const VENDORS = join(import.meta.dirname, "../../test/support/vendors.ts");

/** How long an installation may take, in milliseconds. */
const PATIENCE = 1_200_000;

export interface Installed {
  version: string;
  /** The command that runs its driver in `cwd`. */
  command: [string, ...string[]];
  cwd: string;
}

/** @throws {Error} with the package manager's output */
export async function install(client: MatrixClient, folder: string): Promise<Installed> {
  await mkdir(folder, { recursive: true });
  await cp(DRIVERS, folder, { recursive: true });
  await cp(VENDORS, join(folder, "javascript/vendors.ts"));
  return { ...(await INSTALL[client.ecosystem](client, folder)), cwd: folder };
}

type Install = (client: MatrixClient, folder: string) => Promise<Omit<Installed, "cwd">>;

const INSTALL: Record<MatrixClient["ecosystem"], Install> = {
  async npm({ packages, driver }, folder) {
    await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    await run("npm", ["install", ...options, ...packages], folder);
    const name = (packages[0] ?? "").replace(/(?!^)@.*$/, "");
    const { version } = JSON.parse(await readFile(join(folder, "node_modules", name, "package.json"), "utf8"));
    return { version, command: [process.execPath, driver] };
  },

  async python({ packages, driver }, folder) {
    const bin = join(folder, "venv/bin");
    await run("python3", ["-m", "venv", dirname(bin)], folder);
    await run(join(bin, "pip"), ["install", "--quiet", ...packages], folder);
    const name = (packages[0] ?? "").replace(/[[<>=].*$/, "");
    const script = `import importlib.metadata as m; print(m.version("${name}"))`;
    return { version: await run(join(bin, "python"), ["-c", script], folder), command: [join(bin, "python"), driver] };
  },

  async go({ packages, driver }, folder) {
    const module = join(folder, "go");
    const [name = ""] = packages;
    if (!existsSync(join(module, "go.mod"))) await run("go", ["mod", "init", "bridge"], module);
    await run("go", ["get", `${name}/mcp@latest`], module);
    await run("go", ["build", "-o", "bridge", "."], module);
    const version = await run("go", ["list", "-m", "-f", "{{.Version}}", name], module);
    return { version: version.replace(/^v/, ""), command: [process.execPath, driver, join(module, "bridge")] };
  },

  async rust({ packages, driver }, folder) {
    const crate = join(folder, "rust");
    const [name = ""] = packages;
    if (!existsSync(join(crate, "Cargo.toml")))
      await run("cargo", ["init", "--name", "bridge", "--vcs", "none"], crate);
    const features = ["--features", "client,transport-streamable-http-client-reqwest"];
    await run("cargo", ["add", name, ...features], crate);
    await run("cargo", ["add", "serde_json"], crate);
    await run("cargo", ["add", "tokio", "--features", "macros,rt-multi-thread"], crate);
    await run("cargo", ["build"], crate);
    const [, version = ""] = /@([\d.]+[^\s]*)$/.exec(await run("cargo", ["pkgid", name], crate)) ?? [];
    return { version, command: [process.execPath, driver, join(crate, "target/debug/bridge")] };
  },

  async java({ driver }, folder) {
    const project = join(folder, "java");
    const lib = join(project, "lib");
    await run("mvn", ["-q", "dependency:copy-dependencies", `-DoutputDirectory=${lib}`], project);
    await run("javac", ["-cp", join(lib, "*"), "Bridge.java"], project);
    const jar = (await readdir(lib)).find((file) => /^mcp-\d/.test(file)) ?? "";
    const [, version = ""] = /^mcp-(.*)\.jar$/.exec(jar) ?? [];
    return { version, command: [process.execPath, driver, "java", "-cp", `${lib}/*:${project}`, "Bridge"] };
  },
};

/** Runs a program in a folder; returns its output. */
async function run(program: string, args: string[], cwd: string): Promise<string> {
  return (await execa(program, args, { cwd, timeout: PATIENCE })).stdout.trim();
}
