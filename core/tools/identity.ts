/** How a server describes itself. */
export interface Identity {
  info: {
    name: string;
    title: string;
    version: string;
    websiteUrl?: string;
    icons?: { src: string; mimeType: string; sizes: string[] }[];
  };
  /** Its purpose, in up to 100 characters, for people. */
  description: string;
  /** How the tools are meant to be used, for the model. */
  instructions: string;
}
