import { type HostSetup, hostSetups, type Server } from "../../core/tools/index.ts";
import { programPath } from "../package.ts";

/** The set-up of each host on this machine. Both paths are absolute, since Claude Desktop's PATH often has no Node. */
export function localSetups(server: Server): HostSetup[] {
  return hostSetups(server, { command: process.execPath, args: [programPath("cli/main"), "proxy", server.url] });
}
