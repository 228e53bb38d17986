/**
 * `npm run --silent proxy -- [url] [options]`: serves a hosted MCP endpoint over stdio, for clients that speak nothing
 * else. It is mcp-remote with this project's defaults; its options (`--header`, `--protocol auto`, ...) go behind the
 * URL.
 */
const [first, ...rest] = process.argv.slice(2);
const given = first !== undefined && !first.startsWith("-");
const url = given ? first : "http://127.0.0.1:8787/mcp";
const options = given ? rest : process.argv.slice(2);

// A call that awaits a job may be silent for minutes; mcp-remote gives up after five by default.
const patience = ["--headers-timeout", "600", "--body-timeout", "0"];
process.argv.splice(2, Infinity, url, "--transport", "http-only", "--allow-http", ...patience, ...options);
await import(import.meta.resolve("mcp-remote/dist/proxy.js"));
