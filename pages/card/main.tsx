/** The entry point of a job's card, which runs in a frame of the chat's host. */
import type { McpUiHostContext } from "@modelcontextprotocol/ext-apps";
import { render, useEffect, useState } from "hono/jsx/dom";
import { Card } from "./card.tsx";
import { Follower, type Seen } from "./follow.ts";
import { Host } from "./host.ts";

const host = new Host();

/** Adopts the host's colors, fonts and insets. */
function applyStyle({ theme, styles, safeAreaInsets }: Partial<McpUiHostContext>): void {
  const { style } = document.documentElement;
  if (theme) style.colorScheme = theme;
  for (const [name, value] of Object.entries(styles?.variables ?? {})) if (value) style.setProperty(name, value);
  const fonts = document.getElementById("fonts");
  if (styles?.css?.fonts && fonts) fonts.textContent = styles.css.fonts;
  if (safeAreaInsets) {
    const { top, right, bottom, left } = safeAreaInsets;
    document.body.style.padding = `${top}px ${right}px ${bottom}px ${left}px`;
  }
}

let tell: (seen: Seen) => void = () => {};
const follower = new Follower(host, (seen) => tell(seen));

function Root() {
  const [seen, setSeen] = useState<Seen>({});
  const [title, setTitle] = useState<string | undefined>(undefined);
  useEffect(() => {
    tell = setSeen;
    const adopt = (context: Partial<McpUiHostContext>) => {
      applyStyle(context);
      const { tool } = context.toolInfo ?? {};
      if (!tool) return;
      follower.tool = tool.name;
      setTitle(tool.title ?? tool.name);
    };
    host
      .connect({
        "ui/notifications/tool-input": (input) => follower.called(input.arguments),
        "ui/notifications/tool-result": (answer) => follower.answered(answer),
        "ui/notifications/tool-cancelled": ({ reason }) => setSeen({ notice: reason ?? "The call was cancelled." }),
        "ui/notifications/host-context-changed": adopt,
      })
      .then(adopt)
      .catch((error: Error) => setSeen({ notice: error.message }));
  }, []);
  return <Card {...{ host, title, seen, follower }} />;
}

render(<Root />, document.getElementById("card") as HTMLElement);
