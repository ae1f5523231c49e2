import { useEffect, useState } from 'react';

/**
 * For dialogs that are there only while they are open: when they are gone, the focus is where it was before, or on what
 * opened them, where that was a menu which is gone as well.
 */
export function useFocusBack(opener?: HTMLElement | null): void {
  const [before] = useState(() => opener ?? document.activeElement);
  useEffect(
    () => () => {
      setTimeout(() => {
        const lost = document.activeElement === null || document.activeElement === document.body;
        if (lost && before instanceof HTMLElement) before.focus({ preventScroll: true });
      });
    },
    [before],
  );
}
