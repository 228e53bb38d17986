#!/usr/bin/env node
/** The command line. This file is for every version of Node: one that is too old is refused in a sentence. */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > 22 || (major === 22 && minor >= 18)) {
  await import("./command-line.ts");
} else {
  console.error(`durable-mcp-edge needs Node 22.18 or newer. This is Node ${process.versions.node}.`);
  process.exitCode = 1;
}

export {};
