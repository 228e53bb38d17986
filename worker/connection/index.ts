/** The face of this folder: requests to addresses that others have named. */
export { type Fetch, PrivateAddress, publicRequest } from "./public-fetch.ts";
