/** The paths for browsers: the files of the pages, and the data that MCP does not have. */
import type { Middleware, Route } from "../../core/tools/index.ts";
import { isOwnPage } from "../../functions/http/cookies.ts";
import { NOT_HERE, type PageOptions } from "./options.ts";

/** Refuses requests that no page of this server makes. */
const ownPage: Middleware = async (c, next) => (isOwnPage(c.req.raw) ? next() : c.json(NOT_HERE, 403));

export function pageRoutes(options: PageOptions): Route[] {
  const { admission } = options;
  const route = (
    method: string,
    paths: string[],
    name: keyof typeof import("./handlers.ts"),
    middleware: readonly Middleware[] = [],
  ): Route => ({
    methods: [method],
    paths,
    middleware,
    load: async () => {
      const { [name]: handler } = await import("./handlers.ts");
      return (c) => handler(c, options);
    },
  });
  return [
    route("GET", ["/", "/jobs", "/jobs/*", "/assets/:file", "/favicon.ico"], "showFile"),
    route("GET", ["/view/:sealed"], "openLink"),
    route("GET", ["/pages/about"], "showServer"),
    route("GET", ["/pages/job"], "showJob", admission),
    route("GET", ["/pages/link/:link"], "showLinkedJob"),
    route("GET", ["/pages/subscribers"], "showSubscribers", admission),
    route("DELETE", ["/pages/subscribers"], "endSubscription", [ownPage, ...admission]),
    route("POST", ["/pages/session"], "signIn", [ownPage, ...admission]),
    route("DELETE", ["/pages/session"], "signOut", [ownPage]),
  ];
}
