/** Set by the builder where the module is beside the runner's code, which is bundled. */
declare const STACKS_MODULE: string | undefined;

/** Names the sources' lines in a stack, where the code is bundled; not in one that cannot be told. */
export async function inSources(stack: string): Promise<string> {
  if (typeof STACKS_MODULE === "undefined") return stack;
  const { inSources } = await load(STACKS_MODULE).catch(() => ({ inSources: (same: string) => same }));
  return inSources(stack);
}

/** Not a literal: the bundler would look for a file beside this one. */
const load = (module: string): Promise<{ inSources(stack: string): string }> => import(module);
