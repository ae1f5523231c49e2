/** What this browser keeps for its person. Where that is not allowed, nothing is kept and everything else works. */

/** What was kept under that name, else null. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It holds until the page is left.
  }
}
