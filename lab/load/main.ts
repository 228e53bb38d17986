/**
 * Puts many jobs in flight and tells what that took. There are four kinds of runs, each with options of its own:
 *
 *   npm run load                        many jobs and many clients on the wait  (`commands/load.ts`)
 *   npm run load -- --hostile           ordinary callers beside one who asks for all that he may  (`commands/hostile.ts`)
 *   npm run load -- --sleepers 1000000  timers that sleep in the server 0.9.8  (`commands/sleepers.ts`)
 *   npm run load -- --burst             timers that are due at one moment  (`commands/burst.ts`)
 *
 * Ends with 0 when all of it was as it had to be. Needs Linux.
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
