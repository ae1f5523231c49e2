/** Letters in numbers: lists that hold still while they are read, and changes of more than one request can carry. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { told } from './client';
import { letterKeys, type Change } from './letters';
import type { LetterLine, LetterPage, Selection, Status } from './types';

/** At most so many in one request. */
const PAGE = 500;
const COUNTED = 100_000;

/** Newest first, page by page. It does not refresh by itself, for rows must not move under the pointer. */
export function useLetterList(selection: Selection, limit = 50) {
  return useInfiniteQuery({
    queryKey: [...letterKeys.list(selection, limit), 'still'],
    queryFn: ({ pageParam, signal }) =>
      told('post', '/api/v1/dlq-search', {
        body: { selection, limit, after: pageParam },
        signal,
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
  });
}

/** How many match on all pages. Counting may take longer than the first page does, which does not wait for it. */
export function useMatching(selection: Selection) {
  return useQuery({
    queryKey: [...letterKeys.all, 'count', selection],
    queryFn: async ({ signal }) => {
      const body = { selection, limit: 1, count: true, count_at_most: COUNTED };
      return (await told('post', '/api/v1/dlq-search', { body, signal })).count;
    },
    staleTime: Infinity,
    refetchOnWindowFocus: false,
  });
}

/** How many letters have come since the newest one that is shown. */
export function useNewer(selection: Selection, since: string | undefined, every: number | false) {
  return useQuery({
    queryKey: ['newer-letters', selection, since],
    queryFn: async ({ signal }) => {
      const body = { selection: { ...selection, created_after: since }, limit: 1, count: true, count_at_most: 1000 };
      return (await told('post', '/api/v1/dlq-search', { body, signal })).count;
    },
    enabled: since !== undefined && every !== false,
    initialData: null,
    refetchInterval: every,
  });
}

/** The same letters as they are now, by id: their rows change in place. */
export function useLettersNow(ids: readonly string[], every: number | false) {
  return useQuery({
    queryKey: ['letters-now', ids],
    queryFn: async ({ signal }) => {
      const body = { selection: { ids: [...ids] }, limit: PAGE };
      const page = await told('post', '/api/v1/dlq-search', { body, signal });
      return new Map(page.items.map((line) => [line.id, line]));
    },
    enabled: ids.length > 0 && every !== false,
    initialData: new Map<string, LetterLine>(),
    refetchInterval: every,
  });
}

/** Which letters somebody has chosen: some, or all that match a filter. */
export type Chosen = { ids: string[] } | { query: string };

export function selectionOf(chosen: Chosen): Selection {
  if ('ids' in chosen) return { ids: chosen.ids };
  return chosen.query.trim() === '' ? {} : { q: chosen.query };
}

function* selectionsOf(chosen: Chosen): Generator<Selection> {
  if ('query' in chosen) yield selectionOf(chosen);
  else for (let at = 0; at < chosen.ids.length; at += PAGE) yield { ids: chosen.ids.slice(at, at + PAGE) };
}

export interface Standing {
  id: string;
  status: Status;
}

/** Which letters that is now, all of them, with their status. Null: more than `most`. */
export async function lettersNow(
  chosen: Chosen,
  most: number,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (found: number) => void },
): Promise<Standing[] | null> {
  const found: Standing[] = [];
  for (const selection of selectionsOf(chosen)) {
    let after: string | null = null;
    do {
      const page: LetterPage = await told('post', '/api/v1/dlq-search', { body: { selection, limit: PAGE, after }, signal });
      found.push(...page.items.map(({ id, status }) => ({ id, status })));
      if (found.length > most) return null;
      onProgress(found.length);
      after = page.next;
    } while (after !== null);
  }
  return found;
}

export interface Changed {
  done: string[];
  left: Record<string, Status | null>;
}

/** As many requests as it takes, one after the other. `onProgress` is told what was done so far. */
export async function changeLetters(
  change: Change,
  ids: readonly string[],
  reason: string,
  onProgress: (done: number) => void = () => undefined,
): Promise<Changed> {
  const all: Changed = { done: [], left: {} };
  for (let at = 0; at < ids.length; at += PAGE) {
    const { done, left } = await told('post', '/api/v1/dlq-changes', {
      body: { change, ids: ids.slice(at, at + PAGE), reason },
    });
    all.done.push(...done);
    Object.assign(all.left, left);
    onProgress(all.done.length);
  }
  return all;
}
