import { bundleEdge } from "../../cli/bundle/bundle.ts";
import { bundlePrograms } from "./programs.ts";

/** Bundles the edge and the programs of stacks once, before any test file needs them; after `npm test`, says what it has left out. */
export default async function setup(): Promise<() => void> {
  await bundleEdge();
  await bundlePrograms();
  return () => {
    if (process.env.npm_lifecycle_event !== "test") return;
    console.log(
      "\nThe rest of the tests: npm run test:all (about 18 minutes on two cores). CONTRIBUTING.md has more commands.",
    );
  };
}
