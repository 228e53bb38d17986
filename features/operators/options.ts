/** What the routes for operators need. */
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { OperatorEnv } from "../../core/jobs/worker-report.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { Auth } from "../../functions/auth/auth.ts";
import type { Seal } from "../../functions/auth/seal.ts";
import type { Assets } from "../../functions/http/assets.ts";
import type { OperateCalls } from "./calls.ts";

export interface OperatorOptions {
  variables: OperatorEnv;
  /** Calls the object through which operators see and act. */
  callers: {
    operate<K extends keyof OperateCalls>(
      call: K,
      ...args: Parameters<OperateCalls[K]>
    ): Promise<Awaited<ReturnType<OperateCalls[K]>>>;
  };
  /** The jobs of the deployment. */
  store: RemoteStore;
  client: ResonateClient;
  /** Undefined in a deployment that authenticates nobody. */
  auth: Auth | undefined;
  /** The names of the callers who are blocked. */
  blocked(): Promise<readonly string[]>;
  pages: {
    readonly files: Assets | undefined;
    readonly issuer: string | undefined;
    /** Undefined if browsers cannot sign in. */
    readonly seal: Seal | undefined;
    /** The request with the token of its browser's session. */
    withSession(request: Request): Promise<Request>;
  };
}
