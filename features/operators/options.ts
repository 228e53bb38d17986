/** What the routes and the object for operators need. */
import type { Job } from "../../core/author/index.ts";
import type { OperatorEnv, RemoteStore } from "../../core/jobs/index.ts";
import type { endpointOf, Remote, ResonateClient } from "../../core/resonate/index.ts";
import type { Tool } from "../../core/tools/index.ts";
import type { RefusalOf } from "../../functions/auth/admission.ts";
import type { AuthConfig } from "../../functions/auth/auth-config.ts";
import type { Auth } from "../../functions/auth/auth.ts";
import type { Seal } from "../../functions/auth/seal.ts";
import type { Assets } from "../../functions/http/assets.ts";
import type { LogLevel } from "../../functions/http/log.ts";
import type { OperateCalls } from "./calls.ts";

/** What this deployment runs and offers. */
export interface Definitions {
  readonly jobs: readonly Job[];
  readonly tools: readonly Tool[];
}

/** The variables of the edge that the object for operators reads. */
export type OperatorConfig = OperatorEnv &
  Parameters<typeof endpointOf>[0] & {
    auth: AuthConfig;
    isOperated: boolean;
    MAX_STORED_BYTES: number;
    LOG_LEVEL: LogLevel;
  };

export interface OperatorOptions {
  variables: OperatorEnv & { PUBLIC_URL?: string | undefined };
  /** The methods of the object through which operators see and act. */
  operators(): Remote<OperateCalls>;
  /** The jobs of the deployment. */
  store: RemoteStore;
  client: ResonateClient;
  /** Undefined in a deployment that authenticates nobody. */
  auth: Auth | undefined;
  refusalOf: RefusalOf;
  pages: {
    readonly files: Assets | undefined;
    readonly issuer: string | undefined;
    /** Undefined if browsers cannot sign in. */
    readonly seal: Seal | undefined;
    /** The request with the token of its browser's session. */
    withSession(request: Request): Promise<Request>;
  };
}
