/** What holds of static tokens wherever they are accepted. */

/** How many characters a token that is shown must have. A shorter one is refused, whatever is listed: it can be guessed. */
const MIN_TOKEN_CHARACTERS = 16;

/** The SHA-256 of the empty text, in hexadecimal: of an entry that was made from a variable that was not set. */
export const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** Whether a text is long enough to be a token. */
export const mayBeToken = (token: string | undefined): token is string =>
  token !== undefined && token.length >= MIN_TOKEN_CHARACTERS;
