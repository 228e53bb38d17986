/**
 * The features of a deployment: what each may bring, as one value. A composition lists them in the order in which they act; one
 * that the configuration does not ask for is not in the list. Behavior takes part by the seams; the rest is plain data.
 */
import type { Hono } from "hono";
import type { Job } from "./author/job.ts";
import type { StepFeature } from "./engine/step-feature.ts";
import type { JobFeature } from "./jobs/job-feature.ts";
import type { TaskFeature } from "./jobs/task-feature.ts";
import type { DeclaredCapabilities } from "./tools/abilities.ts";
import type { CallFeature } from "./tools/call-feature.ts";
import type { Method, ResourceProvider } from "./tools/method.ts";
import type { RequestScope } from "./tools/request-scope.ts";
import type { Middleware, Route } from "./tools/route.ts";
import type { Tool } from "./tools/tool.ts";

/** The eras of the protocol: with a session, up to 2025, and with a request's own envelope, from 2026 on. */
export type Era = "modern" | "legacy";

/** A client's response to a question of the server, as a request of its own. */
export interface ClientResponse {
  /** The method and parameters that the same answer has as a request. */
  readonly method: string;
  readonly params: Record<string, unknown>;
  /** @throws {ProtocolError} for an answer that does not fit */
  take(scope: RequestScope, signal: AbortSignal): Promise<void>;
}

/** A feature of the edge. */
export interface EdgeFeature extends JobFeature, CallFeature {
  readonly name: string;
  /** What every request to the edge passes. */
  readonly middleware?: Middleware;
  /** The paths that it serves. */
  readonly routes?: readonly Route[];
  /** Its methods of JSON-RPC, by name. */
  readonly methods?: Readonly<Record<string, Method>>;
  /** What it adds to the server's capabilities. */
  capabilities?(era: Era): { extensions?: Record<string, object>; [capability: string]: object | undefined };
  /** What it adds to the results of methods that list something: by method, then by the name of the list. */
  readonly listing?: Readonly<Record<string, Readonly<Record<string, readonly object[]>>>>;
  /** The server's tools with what the feature does to them. */
  tools?(tools: readonly Tool[]): readonly Tool[];
  readonly resources?: ResourceProvider;
  /** The session id for a client of 2025 in which the feature keeps what the handshake declares; undefined if it needs none. */
  session?(declared: DeclaredCapabilities, scope: RequestScope): Promise<string | undefined>;
  /** Reads a message that is no request; undefined if it is no response to a question of this feature. */
  responseIn?(message: unknown): ClientResponse | undefined;
  /** Notes that a caller calls a tool or method, and how that is answered. */
  note?(what: string, params: object, scope: RequestScope, answered: Promise<Response>): void;
}

/** A feature of the worker. */
export interface WorkerFeature extends TaskFeature, StepFeature {
  readonly name: string;
  /** Whether jobs of this kind have the feature. Default: all kinds have it. */
  isFor?(job: Job): boolean;
  /** The functions, by name, whose tasks it executes itself. */
  readonly functions?: readonly string[];
  /** Adds routes to the port that serves the worker's health. */
  routes?(app: Hono): void;
  /** Called before tasks arrive. @throws {Error} if the worker must not run */
  open?(signal: AbortSignal): Promise<void>;
  /** Called when the worker has stopped. */
  close?(): Promise<void>;
}
