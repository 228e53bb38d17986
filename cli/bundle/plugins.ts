/** Plugins of esbuild for the edge. */
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, extname, join, relative } from "node:path";
import type { Loader, Plugin } from "esbuild";
import { programPath, thisPackage } from "../package.ts";

/** The namespace of modules that are loaded on demand. */
const LAZY = "lazy";

/**
 * Puts all code that the edge needs at its start into one file. Otherwise each part of it that is shared with a different set
 * of lazily loaded modules would be a file of its own: dozens, whose loading takes longer than that of one. `entry`: absolute.
 */
export const startInOneFile = (entry: string): Plugin => ({
  name: "start in one file",
  setup({ onResolve, onLoad, resolve }) {
    const isResolved = {};
    onResolve({ filter: /./ }, async ({ kind, path, importer, resolveDir, pluginData }) => {
      if (kind !== "dynamic-import" || pluginData === isResolved) return undefined;
      const found = await resolve(path, { kind, importer, resolveDir, pluginData: isResolved });
      const isFile = !found.external && found.errors.length === 0 && found.namespace === "file";
      return isFile ? { path: found.path, namespace: LAZY } : undefined;
    });
    // The last import makes all code of the start a part of what each of these modules needs.
    onLoad({ filter: /./, namespace: LAZY }, ({ path }) => {
      const [module, start] = [path, entry].map((each) => JSON.stringify(each));
      const exported = `export * from ${module}; import * as all from ${module}; export default all.default;`;
      return { contents: `${exported} import ${start};`, resolveDir: dirname(path) };
    });
  },
});

/** The namespace of the second copy of zod. */
const OWN_ZOD = "own-zod";

/**
 * Gives the code that reads JSON Schema a copy of zod of its own. It needs all of zod, and a single copy would be a part of the
 * start.
 */
export const ownZod: Plugin = {
  name: "own zod",
  setup({ onResolve, onLoad, resolve }) {
    const reader = programPath("core/tools/json-schema");
    onResolve({ filter: /^zod$/ }, async ({ kind, path, importer, resolveDir }) => {
      if (importer !== reader) return undefined;
      const found = await resolve(path, { kind, importer: "", resolveDir });
      return { path: found.path, namespace: OWN_ZOD, sideEffects: false };
    });
    onResolve({ filter: /./, namespace: OWN_ZOD }, async ({ kind, path, resolveDir }) => {
      const found = await resolve(path, { kind, resolveDir });
      return { path: found.path, namespace: OWN_ZOD, sideEffects: false };
    });
    onLoad({ filter: /./, namespace: OWN_ZOD }, async ({ path }) => ({
      contents: await readFile(path, "utf8"),
      resolveDir: dirname(path),
    }));
  },
};

/** The file with the source maps for the runner: see `source-maps.ts` of both. */
export const RUNNER_MAPS = "source-maps.js";

/** Leaves the runner's source maps out. They are made of the result, and put into {@link RUNNER_MAPS}. */
export const runnerMaps: Plugin = {
  name: "runner maps",
  setup({ onResolve }) {
    const maps = programPath("worker/runner/source-maps");
    onResolve({ filter: /\/source-maps\.[jt]s$/ }, ({ path, resolveDir }) =>
      join(resolveDir, path) === maps ? { path: `./${RUNNER_MAPS}`, external: true } : undefined,
    );
  },
};

/** A class that inherits: perhaps an error, and the classes of errors are stored by their names. */
const SUBCLASS = /\bclass\s+[\w$]+\s+extends\b/;

/**
 * Prepares our code and the author's for the minified edge: it imports what it names in a face of core from the module behind
 * the face, and the names of functions and classes stay in the author's code, which stacks show, and in files that may have
 * classes of errors. With those of all code, the start would be a tenth larger.
 */
export const ownCode = (root: string): Plugin => ({
  name: "own code",
  setup({ onLoad, esbuild }) {
    const tsconfig = join(root, "tsconfig.json");
    const tsconfigRaw = existsSync(tsconfig) ? readFileSync(tsconfig, "utf8") : "{}";
    onLoad({ filter: /\.[cm]?[jt]sx?$/, namespace: "file" }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = pastFaces(text, dirname(path));
      const extension = extname(path).replace(/^\.[cm]?/, "") as Loader;
      const loader = extension === "js" ? "jsx" : extension;
      if (!isAuthors(path) && !SUBCLASS.test(text)) return contents === text ? undefined : { contents, loader };
      const { code } = await esbuild.transform(contents, {
        loader,
        ...(isAuthors(path) && { tsconfigRaw }),
        jsx: "preserve",
        keepNames: true,
        sourcemap: "inline",
        sourcesContent: false,
        sourcefile: basename(path),
      });
      return { contents: code, loader: "jsx" };
    });
  },
});

/** An import or export of names from another module. */
const NAMES_FROM = /^((?:im|ex)port) (type )?\{([^}]*)\} from "(\.[^"]*)";/gm;

/** An import from a face of core. */
const FROM_FACE = /\/core\/(?:\w+\/)?index\.[jt]s$/;

/** The modules behind the faces that were read: by the face's path, then by name. */
const faces = new Map<string, Map<string, string>>();

/**
 * `text`, a module in `folder`, with imports from the modules behind the faces of core. A face would make what any other module
 * imports from it a part of the start, since esbuild assigns whole modules to files.
 */
function pastFaces(text: string, folder: string): string {
  return text.replace(NAMES_FROM, (statement, keyword, type = "", names: string, from: string) => {
    if (!FROM_FACE.test(from)) return statement;
    const behind = modulesBehind(join(folder, from));
    const each = names.split(",").map((name) => name.trim());
    const imports = each.filter(Boolean).map((name) => {
      const module = behind.get(name.replace(/^type /, "").replace(/ as .*/, ""));
      return `${keyword} ${type}{ ${name} } from ${JSON.stringify(join(dirname(from), module ?? basename(from)))};`;
    });
    // On as many lines as before, for the source map.
    return imports.join(" ") + statement.replace(/[^\n]/g, "");
  });
}

/** For each name that a face exports, the module behind it, relative to the face. */
function modulesBehind(face: string): Map<string, string> {
  let behind = faces.get(face);
  if (!behind) {
    behind = new Map();
    for (const [, , , names = "", module = ""] of readFileSync(face, "utf8").matchAll(NAMES_FROM))
      for (const name of names.split(",")) behind.set(name.trim().replace(/^type /, ""), module);
    faces.set(face, behind);
  }
  return behind;
}

/** Whether a file is the author's, and neither a library's nor this package's own. Its tools count as an author's. */
export function isAuthors(path: string): boolean {
  const inPackage = relative(thisPackage().root, path);
  return !/(^|\/)node_modules\//.test(path) && (inPackage.startsWith("..") || inPackage.startsWith("tools/"));
}
