/** What opens addresses in the hosts' environment: signs in at the authorization server, agrees, and follows it back. */
import { UserAgent } from "../../test/auth/user-agent.ts";

const address = process.argv.find((each) => /^https?:/.test(each)) ?? "";
const redirect = new URL(address).searchParams.get("redirect_uri") ?? "";
await fetch(await new UserAgent("ada", redirect).authorize(new URL(address)));
