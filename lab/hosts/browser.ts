/** The browser in the hosts' environment: it signs in at the authorization server, consents, and follows the redirect back. */
import { UserAgent } from "../../test/auth/user-agent.ts";

const address = process.argv.find((each) => /^https?:/.test(each)) ?? "";
const redirect = new URL(address).searchParams.get("redirect_uri") ?? "";
await fetch(await new UserAgent("ada", redirect).authorize(new URL(address)));
