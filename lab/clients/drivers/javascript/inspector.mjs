/** The Inspector's command line: one process per call. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { drive, token, url } from "./steps.mjs";

const run = promisify(execFile);
const auth = token ? ["--header", `Authorization: Bearer ${token}`] : [];

async function inspect(args) {
  const command = ["node_modules/.bin/mcp-inspector", "--cli", url, "--transport", "http", ...auth, ...args];
  const { stdout } = await run("node", command, { maxBuffer: 1e8 }).catch((error) => {
    if (error.stdout?.trim().startsWith("{")) return error;
    throw new Error(error.stderr || error.message);
  });
  return JSON.parse(stdout);
}

await drive({
  list: async () => (await inspect(["--method", "tools/list"])).tools.map(({ name }) => name),
  call: (name, args) => {
    const given = Object.entries(args).flatMap(([key, value]) => [
      "--tool-arg",
      `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    ]);
    return inspect(["--method", "tools/call", "--tool-name", name, ...given]);
  },
});
