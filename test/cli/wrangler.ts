/** What wrangler does with the fake platform, in the test's process. A test compares both. */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { type Configuration, readConfiguration } from "../../cli/bundle/configuration.ts";
import type { RunWrangler } from "../../cli/deploy/wrangler.ts";
import type { DeployedWorker, Platform } from "./platform.ts";

type Binding = DeployedWorker["bindings"][number];

/** The parts of a configuration that a deployment uploads. */
interface Uploaded extends Configuration {
  workers_dev?: boolean;
  keep_vars?: boolean;
  limits?: unknown;
  migrations?: unknown;
  containers?: { name?: string; image?: string; class_name: string }[];
  ratelimits?: { name: string; namespace_id: string; simple: object }[];
}

const OPTIONS = {
  config: { type: "string", default: "wrangler.toml" },
  name: { type: "string" },
  "secrets-file": { type: "string" },
  var: { type: "string", multiple: true, default: [] as string[] },
  "keep-vars": { type: "boolean", default: false },
  "dry-run": { type: "boolean", default: false },
  force: { type: "boolean", default: false },
} as const;

/** Runs `deploy` and `delete` on the platform, as wrangler does. A failed one sets the exit code. */
export const wranglerOn =
  (platform: Platform): RunWrangler =>
  async (args) => {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
    const config: Uploaded = await readConfiguration(values.config);
    const name = values.name ?? config.name ?? "";
    const isRefused = positionals[0] === "delete" ? platform.stays === name : platform.refuses?.(name);
    if (isRefused) {
      process.exitCode = 1;
      return undefined;
    }
    if (values["dry-run"]) return [];
    if (positionals[0] === "delete") {
      platform.workers.delete(name);
      return [];
    }
    const secrets =
      values["secrets-file"] === undefined ? {} : JSON.parse(await readFile(values["secrets-file"], "utf8"));
    const kept = config.keep_vars || values["keep-vars"] ? ["plain_text", "secret_text"] : ["secret_text"];
    const bindings = bindingsOf(config, values.var, secrets);
    platform.upload(name, { modules: {}, bindings, migrations: config.migrations, limits: config.limits }, kept);
    for (const { name: application = `${name}-workercontainer`, image = "" } of config.containers ?? [])
      platform.apply({ name: application, configuration: { image } });
    return config.workers_dev === false ? [] : [`https://${name}.me.workers.dev`];
  };

function bindingsOf(config: Uploaded, variables: readonly string[], secrets: Record<string, string>): Binding[] {
  const { vars, durable_objects, ratelimits = [], assets } = config;
  const given = variables.map((each) => [each.slice(0, each.indexOf(":")), each.slice(each.indexOf(":") + 1)]);
  const texts = Object.entries<unknown>({ ...vars, ...Object.fromEntries(given) });
  return [
    ...texts.map(([name, text]) => ({ name, type: "plain_text", text: String(text) })),
    ...Object.entries(secrets).map(([name, text]) => ({ name, type: "secret_text", text })),
    ...(durable_objects?.bindings ?? []).map((each) => ({ type: "durable_object_namespace", ...each })),
    ...ratelimits.map((each) => ({ type: "ratelimit", ...each })),
    ...(assets?.binding === undefined ? [] : [{ name: assets.binding, type: "assets" }]),
  ];
}
