/** The runtime's classes for objects with remote methods. Node has none; `Object` lets tests import code that extends them. */
interface Runtime {
  DurableObject: new (state: unknown, env: object) => object;
  RpcTarget: new () => object;
}

export const { DurableObject, RpcTarget }: Runtime = await import("cloudflare:workers" as string).catch(() => ({
  DurableObject: Object,
  RpcTarget: Object,
}));
