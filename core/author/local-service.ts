/**
 * A service that a set of tools brings along for runs on one machine, such as a stand-in for a service on the internet. The
 * default export of a project's module `tools/local.ts` lists such services; `"durable-mcp-edge": { "local": "…" }` in
 * `package.json` names another module.
 *
 * @example
 * const orders: LocalService = {
 *   name: "the order book",
 *   option: { name: "sample-orders", description: "orders of a made-up shop" },
 *   main: new URL("../tools/orders.ts", import.meta.url),
 *   env: (origin) => ({ ORDERS_URL: `${origin}/orders` }),
 * };
 * export default [orders];
 */
export interface LocalService {
  /** Its name in messages, such as "the sample archive". */
  name: string;
  /** The launcher's option that turns it on, without dashes, and its description for `--help`. */
  option: { name: string; description: string };
  /** The program. Node runs it with `--port PORT`; it answers `GET /health` with 2xx once it is ready. */
  main: URL;
  /** Variables that the worker gets while the service runs; `origin` is the URL of the service. */
  env(origin: string): Record<string, string>;
  /** A line that the launcher prints when everything is up. */
  banner?: string;
  /** Called once everything is up, if the service is off; returns lines to print. */
  check?(env: Readonly<Record<string, string | undefined>>): Promise<string[]>;
}
