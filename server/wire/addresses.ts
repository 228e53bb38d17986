import { parsePollAddress } from "../engine/poll-address.ts";

/**
 * Whether the standalone server accepts `address`. The standalone server also pushes to webhooks, topics and scripts. This server
 * accepts their addresses, so that promises can be created, but sends nothing to them.
 */
export function isAddress(address: string): boolean {
  const url = URL.parse(address);
  switch (url?.protocol) {
    case "http:":
    case "https:":
    case "bash:":
      return true;
    case "gcps:":
      return url.hostname !== "" && url.pathname.length > 1;
    default:
      return parsePollAddress(address) !== undefined;
  }
}
