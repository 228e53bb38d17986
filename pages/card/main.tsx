/** The card of a job in a chat, in a frame of its host. */
import {
  App,
  applyDocumentTheme,
  applyHostFonts,
  applyHostStyleVariables,
  type McpUiHostContext,
} from "@modelcontextprotocol/ext-apps";
import { render, useEffect, useState } from "hono/jsx/dom";
import { Card } from "./card.tsx";
import { Follower, type Seen } from "./follow.ts";
import type { About } from "./job.ts";

const about = JSON.parse(document.getElementById("about")?.textContent ?? "{}") as About;
const app = new App({ name: "job-card", version: "1.0.0" });

/** Adopts the host's colors, fonts and insets. */
function applyStyle({ theme, styles, safeAreaInsets }: Partial<McpUiHostContext>): void {
  if (theme) applyDocumentTheme(theme);
  if (styles?.variables) applyHostStyleVariables(styles.variables);
  if (styles?.css?.fonts) applyHostFonts(styles.css.fonts);
  if (safeAreaInsets) {
    const { top, right, bottom, left } = safeAreaInsets;
    document.body.style.padding = `${top}px ${right}px ${bottom}px ${left}px`;
  }
}

let tell: (seen: Seen) => void = () => {};
const follower = new Follower(app, about, (seen) => tell(seen));

function Root() {
  const [seen, setSeen] = useState<Seen>({});
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    tell = setSeen;
    app.addEventListener("hostcontextchanged", (changed) => {
      applyStyle(changed);
      setTheme((count) => count + 1);
    });
    app.addEventListener("toolinput", (input) => follower.called(input.arguments));
    app.addEventListener("toolresult", (answer) => follower.answered(answer));
    app.addEventListener("toolcancelled", ({ reason }) => setSeen({ notice: reason ?? "The call was cancelled." }));
    app
      .connect()
      .then(() => applyStyle(app.getHostContext() ?? {}))
      .catch((error: Error) => setSeen({ notice: error.message }));
  }, []);
  return (
    <Card about={about} seen={seen} follower={follower} theme={theme} onOpen={(url) => void app.openLink({ url })} />
  );
}

render(<Root />, document.getElementById("card") as HTMLElement);
