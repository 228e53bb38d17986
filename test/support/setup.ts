import { bundleEdge } from "../../cli/bundle/bundle.ts";

/** Bundles the edge once, before any test file needs it. */
export default async function setup(): Promise<void> {
  await bundleEdge();
}
