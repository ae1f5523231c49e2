/** What the server writes into the page before it sends it. */
function told(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="redrive-${name}"]`)?.content ?? '';
}

/** Where the server has the console: empty, or a path such as `/redrive`. */
export const basePath = told('base').replace(/\/+$/, '');

/** Ways to sign in that the server offers. */
export const signInWays: ReadonlySet<string> = new Set(told('sign-in').split(/\s+/).filter(Boolean));

/** Where this server is, for those who ask it from elsewhere. */
export const serverAddress = (): string => window.location.origin + basePath;
