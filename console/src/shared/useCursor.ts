import { useEffect, useRef, useState } from 'react';

/** The row that j and k have chosen; -1: none yet. */
export function useCursor(rows: number) {
  const [at, setAt] = useState(-1);
  return {
    at: Math.min(at, rows - 1),
    set: setAt,
    next: () => setAt((old) => Math.min(rows - 1, old + 1)),
    previous: () => setAt((old) => Math.max(0, old - 1)),
  };
}

/** Scrolls a row into view when it is chosen. */
export function useVisibleRow(chosen: boolean) {
  const ref = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (chosen) ref.current?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  return ref;
}
