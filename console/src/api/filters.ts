import { useQuery } from '@tanstack/react-query';
import { told } from './client';

export interface Completion {
  text: string;
  /** Where it goes: from, and up to but not including. */
  from: number;
  to: number;
  /** For people: what it means. */
  what: string;
}

/** The server counts characters, and JavaScript halves of those beyond 16 bits. */
const charactersBefore = (text: string, at: number) => Array.from(text.slice(0, at)).length;
const halvesBefore = (text: string, at: number) => Array.from(text).slice(0, at).join('').length;

/** What could be written next. A filter may be personal: it goes by the body, and stands in no URL. */
export async function completionsOf(filter: string, cursor: number, signal?: AbortSignal): Promise<Completion[]> {
  const body = { q: filter, at: charactersBefore(filter, cursor) };
  const { items } = await told('post', '/api/v1/search/complete', { body, signal });
  return items.map(({ text, replaces: [from = 0, to = 0], what }) => ({
    text,
    from: halvesBefore(filter, from),
    to: halvesBefore(filter, to),
    what,
  }));
}

export function useCompletions(filter: string, cursor: number, enabled: boolean) {
  return useQuery({
    queryKey: ['search', 'complete', filter, cursor],
    queryFn: ({ signal }) => completionsOf(filter, cursor, signal),
    enabled,
    staleTime: 30_000,
    gcTime: 60_000,
    retry: false,
  });
}

/** Whether a filter can be read, what is wrong with it where, and how we write it. */
export function useFilterCheck(filter: string, enabled = true) {
  return useQuery({
    queryKey: ['search', 'check', filter],
    queryFn: ({ signal }) => told('post', '/api/v1/search/check', { body: { q: filter }, signal }),
    enabled,
    staleTime: 30_000,
  });
}
