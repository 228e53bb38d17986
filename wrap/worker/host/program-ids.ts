/** Small integers as the ids of requests to a program: some programs accept no others, and do not say so. */

type Id = string | number;
type Meta = Record<string, unknown>;
interface Message {
  id?: unknown;
  method?: string | undefined;
  params?: Record<string, unknown> | undefined;
}

const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
/** The maximum number of requests that may wait for an answer; the oldest ones are forgotten. */
const MAX_OPEN_REQUESTS = 100_000;

/** The error of a request to which a program has probably answered, under an id that no request has. */
export const UNKNOWN_ID = {
  code: -32603,
  message: "The program answered under another id than that of the request. Whether it has done anything is unknown.",
};

export class ProgramIds {
  #last = 0;
  /** The open requests: the ids by number, and the numbers by id. */
  readonly #ids = new Map<number, Id>();
  readonly #numbers = new Map<Id, number>();

  /** The message as the program gets it. */
  outward<Sent extends Message>(message: Sent): Sent {
    const { id, method, params } = message;
    if (method === "notifications/cancelled") {
      const requestId = this.#numbers.get(params?.requestId as Id);
      return requestId === undefined ? message : { ...message, params: { ...params, requestId } };
    }
    if (method === undefined || id === undefined) return message;
    const number = this.#add(id as Id);
    const meta = params?._meta as Meta | undefined;
    const isToken = meta !== undefined && meta.progressToken === id;
    return {
      ...message,
      id: number,
      ...(isToken && { params: { ...params, _meta: { ...meta, progressToken: number } } }),
    };
  }

  #add(id: Id): number {
    this.#last += 1;
    this.#ids.set(this.#last, id);
    this.#numbers.set(id, this.#last);
    for (const first of this.#ids.keys()) if (this.#ids.size > MAX_OPEN_REQUESTS) this.delete(first);
    return this.#last;
  }

  /** The id of the open request of this number. Some programs make a text of it. */
  idOf(number: unknown): Id | undefined {
    return this.#ids.get(Number(number));
  }

  /** Whether a request has had this number. */
  isUsed(number: unknown): boolean {
    return Number(number) >= 1 && Number(number) <= this.#last;
  }

  /** The request of this number has its answer. */
  delete(number: unknown): void {
    const id = this.idOf(number);
    this.#ids.delete(Number(number));
    if (id !== undefined) this.#numbers.delete(id);
  }

  /** The message of a program as its receiver here knows it. One that answers no request is an error without an id. */
  inward<Received extends Message>(message: Received): Received {
    const { id, method, params } = message;
    if (method !== undefined) return this.#withIds(message, params);
    if (id === undefined) return message;
    const known = this.idOf(id);
    this.delete(id);
    if (known !== undefined) return { ...message, id: known };
    // A second answer must not count as that of another request.
    return this.isUsed(id) ? { ...message, id: `answered-${id}` } : ({ jsonrpc: "2.0", error: UNKNOWN_ID } as never);
  }

  /** A notification with the ids by which the program names requests. */
  #withIds<Received extends Message>(message: Received, params: Message["params"]): Received {
    const meta = params?._meta as Meta | undefined;
    const token = this.idOf(params?.progressToken);
    const subscription = this.idOf(meta?.[SUBSCRIPTION_ID]);
    if (token === undefined && subscription === undefined) return message;
    return {
      ...message,
      params: {
        ...params,
        ...(token !== undefined && { progressToken: token }),
        ...(subscription !== undefined && { _meta: { ...meta, [SUBSCRIPTION_ID]: subscription } }),
      },
    };
  }
}
