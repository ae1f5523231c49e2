import { useSyncExternalStore } from 'react';

/** Whether the server answers, as the last request has seen it. */
export interface Away {
  /** When it was first missed, in milliseconds of the clock. */
  since: number;
  /** When it makes sense to ask again. */
  again: number;
}

const AGAIN_AFTER = 3;
let away: Away | null = null;
const listeners = new Set<() => void>();

function set(next: Away | null): void {
  away = next;
  for (const each of listeners) each();
}

export function noteAway(retryAfter: number | null, now: number = Date.now()): void {
  set({ since: away?.since ?? now, again: now + (retryAfter ?? AGAIN_AFTER) * 1000 });
}

export function noteAnswer(): void {
  if (away !== null) set(null);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useAway(): Away | null {
  return useSyncExternalStore(subscribe, () => away);
}
