import type { FC } from "hono/jsx/dom";
import { useAction } from "./components.tsx";

interface TokenFormProps {
  label: string;
  hint?: string;
  signIn(token: string): Promise<unknown>;
  onDone(): void;
}

export const TokenForm: FC<TokenFormProps> = ({ label, hint, signIn, onDone }) => {
  const { attempt, problem } = useAction();
  return (
    <form
      class="form card"
      onSubmit={async (event: Event) => {
        event.preventDefault();
        const token = new FormData(event.target as HTMLFormElement).get("token");
        await attempt(() => signIn(String(token).trim()).then(onDone));
      }}
    >
      <h2>Sign in</h2>
      <div class="field">
        <label for="token">{label}</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="off"
          required
          {...(hint !== undefined && { "aria-describedby": "token-hint" })}
        />
        {hint !== undefined && (
          <small id="token-hint" class="hint">
            {hint}
          </small>
        )}
      </div>
      {problem}
      <div class="actions">
        <button type="submit" class="main">
          Sign in
        </button>
      </div>
    </form>
  );
};
