import { type FC, useState } from "hono/jsx/dom";
import { type About, signIn } from "./server.ts";

/** What somebody sees whom the server does not know. */
export const SignIn: FC<{ about: About | undefined }> = ({ about }) => {
  const [problem, setProblem] = useState("");
  if (!about) return null;
  if (!about.sign_in) {
    return (
      <p class="notice">
        This server lets no browser sign in: whoever runs it has not switched that on. A job's own link, which tools
        return, may still lead to it.
      </p>
    );
  }
  return (
    <form
      class="form card"
      onSubmit={async (event: Event) => {
        event.preventDefault();
        const token = new FormData(event.target as HTMLFormElement).get("token");
        await signIn(String(token).trim()).then(
          () => location.reload(),
          (error) => setProblem(error.message),
        );
      }}
    >
      <h2>Sign in</h2>
      <div class="field">
        <label for="token">Token</label>
        <input id="token" name="token" type="password" autocomplete="off" required aria-describedby="token-hint" />
        <small id="token-hint" class="hint">
          The one that your MCP client has. This browser keeps it sealed, for up to twelve hours.
        </small>
      </div>
      {problem !== "" && (
        <p class="notice error" role="alert">
          {problem}
        </p>
      )}
      <div class="actions">
        <button type="submit" class="main">
          Sign in
        </button>
      </div>
    </form>
  );
};
