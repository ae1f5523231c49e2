import { useEffect, useState } from 'react';

/**
 * For dialogs that are there only while they are open: when they are gone, the focus is where it was before, or on what
 * opened them, where that was a menu which is gone as well. A function finds it only then, if it may have moved.
 */
export function useFocusBack(opener?: HTMLElement | null | (() => HTMLElement | null)): void {
  const [back] = useState(() => {
    if (typeof opener === 'function') return opener;
    const before = opener ?? document.activeElement;
    return () => before;
  });
  useEffect(
    () => () => {
      setTimeout(() => {
        const lost = document.activeElement === null || document.activeElement === document.body;
        const found = lost ? back() : null;
        if (found instanceof HTMLElement) found.focus({ preventScroll: true });
      });
    },
    [back],
  );
}
