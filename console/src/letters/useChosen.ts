import { useState } from 'react';
import type { Chosen } from '@/api/letter-lists';
import type { Count } from '@/api/types';

const NONE: ReadonlySet<string> = new Set();

/** What is selected in a list: some letters, or all that match its filter. Another filter selects nothing. */
export function useChosen(filter: string, listed: readonly string[]) {
  const [held, setHeld] = useState({ filter, ids: NONE, all: false, last: '' });
  if (held.filter !== filter) setHeld({ filter, ids: NONE, all: false, last: '' });
  const { ids, all, last } = held;
  const put = (next: ReadonlySet<string>, by = '') => setHeld({ filter, ids: next, all: false, last: by });
  const between = (id: string): string[] => {
    const [from, to] = [listed.indexOf(last), listed.indexOf(id)];
    return from < 0 || to < 0 ? [id] : listed.slice(Math.min(from, to), Math.max(from, to) + 1);
  };
  return {
    all,
    ids,
    has: (id: string) => all || ids.has(id),
    /** With `range`, everything from the line that was selected last. */
    toggle: (id: string, range = false) => {
      const next = new Set(all ? listed : ids);
      const remove = next.has(id) && !range;
      for (const each of range ? between(id) : [id]) if (!remove) next.add(each);
      if (remove) next.delete(id);
      put(next, id);
    },
    everyListed: all || (listed.length > 0 && listed.every((id) => ids.has(id))),
    someListed: all || listed.some((id) => ids.has(id)),
    toggleListed: (on: boolean) => put(on ? new Set([...ids, ...listed]) : NONE),
    chooseAll: () => setHeld({ filter, ids: NONE, all: true, last: '' }),
    clear: () => put(NONE),
    isEmpty: !all && ids.size === 0,
    chosen: (all ? { query: filter } : { ids: [...ids] }) as Chosen,
    /** How many that is; undefined: nobody has counted them. */
    count: (matching: Count | null | undefined): number | undefined =>
      all ? (matching?.exact === true ? matching.number : undefined) : ids.size,
  };
}
