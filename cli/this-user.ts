import { userInfo } from "node:os";

/** The name of the user who runs this process. A container's user may have none. */
export function thisUser(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return process.env.USER;
  }
}
