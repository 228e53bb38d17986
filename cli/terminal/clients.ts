import { type HostSetup, hostSetups, type Server } from "../../functions/pages/hosts.ts";
import { programPath } from "../package.ts";

/** The set-up of each host on this machine: Claude Desktop's PATH often has no Node, so both paths are absolute. */
export function localSetups(server: Server): HostSetup[] {
  return hostSetups(server, { command: process.execPath, args: [programPath("cli/main"), "proxy", server.url] });
}
