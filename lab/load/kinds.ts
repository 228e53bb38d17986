/**
 * Measures many concurrent jobs. There are four kinds of runs, each with its own options:
 *
 *   npm run load                        many jobs and many waiting clients  (`commands/load.ts`)
 *   npm run load -- --hostile           ordinary callers beside one that uses all its limits  (`commands/hostile.ts`)
 *   npm run load -- --sleepers 1000000  timers that sleep in the server 0.9.8  (`commands/sleepers.ts`)
 *   npm run load -- --burst             timers that are due at one moment  (`commands/burst.ts`)
 *
 * Exits with 0 if all answers were correct. Needs Linux.
 */
const KINDS: Record<string, () => Promise<{ run(): Promise<number> }>> = {
  "--hostile": () => import("./commands/hostile.ts"),
  "--sleepers": () => import("./commands/sleepers.ts"),
  "--burst": () => import("./commands/burst.ts"),
};

const kind = Object.keys(KINDS).find((flag) =>
  process.argv.some((given) => given === flag || given.startsWith(`${flag}=`)),
);
const { run } = await (KINDS[kind ?? ""] ?? (() => import("./commands/load.ts")))();
process.exit(await run());
