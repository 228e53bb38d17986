/** Why a request to a wrapped server has no answer. */

/** It has not reached the server: it may be sent again, whatever it is. */
export class NotSent extends Error {
  override name = "NotSent";
}

/** It was not sent, and will not be however often it is tried: something is not set as it has to be, or is refused here. */
export class Unsendable extends NotSent {
  override name = "Unsendable";
}

/** The server, or what stands before it, has refused it, and so has not done it. */
export class CallRefused extends Error {
  override name = "Refused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  /** Whether the same request may be taken later. */
  get mayGetBetter(): boolean {
    return [408, 409, 425, 429].includes(this.status);
  }
}

/** It was sent, and no answer will come: whether it was done is unknown. */
export class Lost extends Error {
  override name = "Lost";
}

/** It was sent, and what has become of it cannot be found out. */
export class Gone extends Error {
  override name = "Gone";
}

/** The server's answer is an error of the protocol. */
export class RpcError extends Error {
  override name = "RpcError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
