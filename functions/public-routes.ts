/** The routes of an edge for workers, operators, outside systems and readers of files. */

import { receive as receiveCallback } from "../features/callbacks/callbacks.ts";
import { operate } from "../features/operators/routes.ts";
import { throughDoor } from "../features/shared-resonate/resonate.ts";
import { receive as receiveReports } from "../features/worker-reports/reports.ts";
import type { Edge } from "./parts.ts";

/** Answers a request, or refuses one without the right to it with 401. */
type Door = (request: Request, edge: Edge) => Promise<Response>;

const download: Door = async (request, edge) => {
  const sealed = new URL(request.url).pathname.split("/")[2] ?? "";
  return request.method === "GET" || request.method === "HEAD"
    ? (await edge.files()).download(request, sealed, edge)
    : Response.json({ error: "Not found." }, { status: 404 });
};

const DOORS: Readonly<Record<string, Door>> = {
  callbacks: receiveCallback,
  files: download,
  operate,
  reports: receiveReports,
  resonate: throughDoor,
};

/** The door of a path, by the first part of the path. */
export const doorOf = (path: string): Door => DOORS[path.split("/")[1] ?? ""] ?? throughDoor;
