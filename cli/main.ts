#!/usr/bin/env node
/** The command line. This file must run in every version of Node, to refuse an old version with a clear message. */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > 22 || (major === 22 && minor >= 19)) {
  await import("./command-line.ts");
} else {
  console.error(`durable-mcp-edge needs Node 22.19 or newer. This is Node ${process.versions.node}.`);
  process.exitCode = 1;
}

export {};
