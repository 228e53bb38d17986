/** Options with which esbuild alone bundles an edge as wrangler does, in a fraction of a second instead of several. */
import { resolve } from "node:path";
import type { BuildOptions } from "esbuild";
import { isBuild } from "../build/modules.ts";
import type { Configuration } from "./configuration.ts";

/** Whether the configuration needs a bundling step that only wrangler has. */
export function isForWrangler({ compatibility_flags, build, rules }: Configuration): boolean {
  const isNode = compatibility_flags.some((flag) => flag.startsWith("nodejs_"));
  const isOwn = isBuild(build?.command) && rules?.every(({ type }) => type === "ESModule");
  return isNode || (!isOwn && (build?.command !== undefined || (rules ?? []).length > 0));
}

/** Wrangler's options for `entry`, without minification. `mode` is the value of `process.env.NODE_ENV` in the code. */
export function edgeOptions(
  entry: string,
  { alias = {}, define = {}, build }: Configuration,
  root: string,
  mode: "development" | "production",
): BuildOptions & { metafile: true } {
  const text = JSON.stringify(mode);
  return {
    absWorkingDir: root,
    entryPoints: { index: entry },
    bundle: true,
    format: "esm",
    target: "es2024",
    supported: { "import-source": true, using: true },
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*", ...(build === undefined ? [] : ["./modules/*.js"])],
    alias: Object.fromEntries(
      Object.entries(alias).map(([name, path]) => [name, path.startsWith(".") ? resolve(root, path) : path]),
    ),
    define: {
      "navigator.userAgent": '"Cloudflare-Workers"',
      "process.env.NODE_ENV": text,
      "global.process.env.NODE_ENV": text,
      "globalThis.process.env.NODE_ENV": text,
      ...define,
    },
    loader: { ".js": "jsx", ".mjs": "jsx", ".cjs": "jsx", ".html": "text", ".sql": "text" },
    keepNames: true,
    sourcemap: "external",
    sourcesContent: false,
    metafile: true,
    logLevel: "silent",
  };
}
