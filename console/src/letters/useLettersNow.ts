import { useEffect, useState } from 'react';
import { lettersNow, type Chosen, type Standing } from '@/api/letter-lists';

/** A decision about more would take minutes; runs and the command line are for those. */
export const MOST_AT_ONCE = 50_000;

export interface Now {
  /** Null: they are still being counted. */
  found: Standing[] | null;
  sofar: number;
  tooMany: boolean;
  problem: unknown;
}

const NOTHING: Now = { found: null, sofar: 0, tooMany: false, problem: null };

/** Which letters a selection is at this moment, counted when a dialog opens. */
export function useLettersNow(chosen: Chosen, open: boolean): Now {
  const [now, setNow] = useState(NOTHING);
  const key = open ? JSON.stringify(chosen) : '';
  useEffect(() => {
    if (key === '') return;
    const stop = new AbortController();
    const tell = (next: Partial<Now>) => {
      if (!stop.signal.aborted) setNow((old) => ({ ...old, ...next }));
    };
    lettersNow(JSON.parse(key) as Chosen, MOST_AT_ONCE, { signal: stop.signal, onProgress: (sofar) => tell({ sofar }) }).then(
      (found) => tell(found === null ? { tooMany: true } : { found }),
      (problem: unknown) => tell({ problem }),
    );
    return () => {
      stop.abort();
      setNow(NOTHING);
    };
  }, [key]);
  return now;
}
