/** The options with which esbuild bundles an edge: its main module, and modules that it loads on demand. */
import { builtinModules } from "node:module";
import { resolve } from "node:path";
import type { BuildOptions } from "esbuild";
import { programPath } from "../package.ts";
import type { Configuration } from "./configuration.ts";
import { ownCode, ownZod, runnerMaps, startInOneFile } from "./plugins.ts";

/** In development the code is not minified, so that a build takes less time. */
type Mode = "development" | "production";

/** `entry`: a path relative to the project's folder `root`. Nothing is written: `filesOf` has the result. */
export function edgeOptions(entry: string, { alias = {}, define = {} }: Configuration, root: string, mode: Mode) {
  const text = JSON.stringify(mode);
  const minify = mode === "production";
  return {
    absWorkingDir: root,
    entryPoints: { index: entry },
    bundle: true,
    splitting: true,
    chunkNames: "[name]-[hash]",
    write: false,
    minify,
    format: "esm",
    target: "es2024",
    supported: { "import-source": true, using: true },
    conditions: ["workerd", "worker", "browser"],
    // A Node module that workerd lacks fails only when it is loaded, so that the rest of the edge works.
    external: ["cloudflare:*", "node:*", ...builtinModules],
    alias: {
      "@modelcontextprotocol/server/_shims": programPath("functions/mcp/shims"),
      ...Object.fromEntries(
        Object.entries(alias).map(([name, path]) => [name, path.startsWith(".") ? resolve(root, path) : path]),
      ),
    },
    define: {
      "navigator.userAgent": '"Cloudflare-Workers"',
      "process.env.NODE_ENV": text,
      "global.process.env.NODE_ENV": text,
      "globalThis.process.env.NODE_ENV": text,
      ...define,
    },
    loader: { ".js": "jsx", ".mjs": "jsx", ".cjs": "jsx", ".html": "text", ".sql": "text" },
    plugins: [startInOneFile(resolve(root, entry)), ownZod, runnerMaps, ...(minify ? [ownCode(root)] : [])],
    keepNames: !minify,
    sourcemap: "external",
    sourcesContent: false,
    legalComments: "none",
    metafile: true,
    logLevel: "silent",
  } as const satisfies BuildOptions;
}
