import { bundleEdge } from "../../cli/bundle/bundle.ts";

/** Bundles the edge once, before any test file needs it; after `npm test`, says what it has left out. */
export default async function setup(): Promise<() => void> {
  await bundleEdge();
  return () => {
    if (process.env.npm_lifecycle_event !== "test") return;
    console.log(
      "\nThe rest of the tests: npm run test:all (18 minutes on two cores). CONTRIBUTING.md has more commands.",
    );
  };
}
