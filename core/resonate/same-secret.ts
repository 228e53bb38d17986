/** An addition of workerd to the standard. */
type WorkerdCrypto = SubtleCrypto & { timingSafeEqual(a: BufferSource, b: BufferSource): boolean };

/** Compares secrets in a time that does not reveal where they differ. */
export function isSameSecret(expected: ArrayBufferView<ArrayBuffer>, presented: ArrayBufferView<ArrayBuffer>): boolean {
  return (
    expected.byteLength === presented.byteLength &&
    (crypto.subtle as WorkerdCrypto).timingSafeEqual(expected, presented)
  );
}
