import { useSyncExternalStore } from 'react';

const EVERY = 5_000;
const FRESH = 500;
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // What is shown first must not come from the future: an event of this second is not "in 4 seconds".
  if (timer === undefined || Date.now() - now > FRESH) {
    now = Date.now();
    for (const each of listeners) each();
  }
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, EVERY);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The clock, every few seconds: one timer for all that tell how long ago something was. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
