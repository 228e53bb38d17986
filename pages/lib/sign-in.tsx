import { type FC, useEffect, useState } from "hono/jsx/dom";
import { useAction } from "./components.tsx";
import { type About, signIn } from "./server.ts";
import { TokenForm } from "./token-form.tsx";

/** Shown to viewers who have not signed in. */
export const SignIn: FC<{ about: About | undefined }> = ({ about }) => {
  if (!about) return null;
  if (!about.sign_in) {
    return (
      <p class="notice">
        Browsers cannot sign in to this server: its operator has not switched that on. The link to a job that tools
        return may still lead to it.
      </p>
    );
  }
  return about.auth === "oauth" ? <AtIssuer about={about} /> : <ByToken />;
};

/** Signs in with the token of an MCP client. */
const ByToken: FC = () => (
  <TokenForm
    label="Token"
    hint="The token of your MCP client. This browser keeps it sealed, for up to twelve hours."
    signIn={signIn}
    onDone={() => location.reload()}
  />
);

/** Signs in at the authorization server. */
const AtIssuer: FC<{ about: About }> = ({ about }) => {
  const { attempt, problem } = useAction();
  const [isHidden, setHidden] = useState(false);
  useEffect(() => {
    void attempt(async () => {
      const { arrive, hidesSubjects, isBack } = await import("./oauth.ts");
      if (!isBack()) return setHidden(await hidesSubjects(about));
      await signIn(await arrive(about));
      location.reload();
    });
  }, []);
  return (
    <section class="card" aria-labelledby="sign-in">
      <h2 id="sign-in">Sign in</h2>
      {isHidden && (
        <p class="notice lost">
          {about.issuer} names you differently to each application. You can sign in, but will not see the jobs that your
          MCP client started: open those by the links that its tools return.
        </p>
      )}
      {problem}
      <button type="button" class="main" onClick={() => attempt(async () => (await import("./oauth.ts")).leave(about))}>
        Sign in at {new URL(about.issuer ?? location.href).host}
      </button>
    </section>
  );
};
