/** An addition of workerd to the standard. */
type WorkerdCrypto = SubtleCrypto & { timingSafeEqual(a: BufferSource, b: BufferSource): boolean };

/** Compares secrets in a time that does not reveal where they differ. */
export function isSame(known: ArrayBufferView<ArrayBuffer>, given: ArrayBufferView<ArrayBuffer>): boolean {
  return known.byteLength === given.byteLength && (crypto.subtle as WorkerdCrypto).timingSafeEqual(known, given);
}
