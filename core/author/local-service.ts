/**
 * A service that a family of tools brings for runs on one machine, such as a stand-in for what it asks on the internet.
 * The module `tools/local.ts` of a project (another one: `"durable-mcp-edge": { "local": "…" }` in `package.json`) exports
 * a list of them by default.
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
  /** As it reads in a message: "the sample archive". */
  name: string;
  /** The launcher's option that turns it on, without its dashes, and what `--help` says of it. */
  option: { name: string; description: string };
  /** The program. It is started on Node with `--port PORT`, and answers `GET /health` with 2xx once it is ready. */
  main: URL;
  /** Variables that the worker gets while it runs; `origin` is where it listens. */
  env(origin: string): Record<string, string>;
  /** A line for what the launcher prints when everything is up. */
  banner?: string;
  /** Called once everything is up and the service is off; returns lines to show. */
  check?(env: Readonly<Record<string, string | undefined>>): Promise<string[]>;
}
