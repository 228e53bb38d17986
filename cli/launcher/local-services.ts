import { pathToFileURL } from "node:url";
import type { LocalService } from "../../core/author/local-service.ts";
import { localModuleOf, type Project } from "../project.ts";

export type { LocalService };

/** @throws {Error} if the default export of the project's module is not a list of services */
export async function localServices(project: Project): Promise<readonly LocalService[]> {
  const path = localModuleOf(project);
  if (path === undefined) return [];
  const { default: services } = await import(pathToFileURL(path).href);
  if (!Array.isArray(services)) throw new Error(`${path} exports no list of services by default.`);
  return services;
}
