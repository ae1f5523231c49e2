import { useMutation, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { ask, askRaw, told } from './client';
import type { Letter, LetterChange, NewRevision, Selection } from './types';

export const letterKeys = {
  all: ['letters'] as const,
  list: (selection: Selection, limit: number) => ['letters', 'list', selection, limit] as const,
  one: (id: string) => ['letters', 'one', id] as const,
  revealed: (id: string) => ['letters', 'revealed', id] as const,
};

export interface LetterWithTag {
  letter: Letter;
  etag: string;
}

/** What letters change, other nouns show: counts, groups, queues. */
export async function lettersChanged(client: QueryClient): Promise<void> {
  const nouns = ['letters', 'groups', 'stats', 'queues'];
  await Promise.all(nouns.map((noun) => client.invalidateQueries({ queryKey: [noun] })));
}

/** One page by the URL alone, for those who need no filter. */
export const listLetters = (query: { status?: Letter['status']; queue?: string; group?: string; limit?: number }) =>
  told('get', '/api/v1/dlq', { query });

/** Of each body: more than anything that is masked has, and little enough to come at once. */
const SHOWN_BYTES = 2 * 1024 * 1024;

/** Of bodies beyond SHOWN_BYTES it has the beginning; `body_size` tells how long they are. */
export function useLetter(id: string) {
  return useQuery({
    queryKey: letterKeys.one(id),
    queryFn: async ({ signal }): Promise<LetterWithTag> => {
      const { data, etag } = await ask('get', '/api/v1/dlq/{letter_id}', {
        path: { letter_id: id },
        query: { most_bytes: SHOWN_BYTES },
        signal,
      });
      return { letter: data, etag: etag ?? `"${data.revision}"` };
    },
  });
}

/** Unmasked, and written down with the reason. Kept in memory alone. */
export function useReveal(id: string) {
  return useMutation({
    mutationFn: (reason: string) =>
      told('post', '/api/v1/dlq/{letter_id}/reveal', {
        path: { letter_id: id },
        query: { most_bytes: SHOWN_BYTES },
        body: { reason },
      }),
    gcTime: 0,
  });
}

export function useAttempts(id: string) {
  return useQuery({
    queryKey: [...letterKeys.one(id), 'attempts'],
    queryFn: ({ signal }) => told('get', '/api/v1/dlq/{letter_id}/attempts', { path: { letter_id: id }, signal }),
  });
}

export function useRevisions(id: string) {
  return useQuery({
    queryKey: [...letterKeys.one(id), 'revisions'],
    queryFn: ({ signal }) => told('get', '/api/v1/dlq/{letter_id}/revisions', { path: { letter_id: id }, signal }),
  });
}

export type Edit = Pick<NewRevision, 'reason'> & Partial<NewRevision>;

/** On top of the revision that `etag` names; somebody quicker makes it a problem with status 412. */
export function useRevise(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ edit, etag }: { edit: Edit; etag: string }) =>
      told('post', '/api/v1/dlq/{letter_id}/revisions', { path: { letter_id: id }, body: edit, ifMatch: etag }),
    onSuccess: () => lettersChanged(client),
  });
}

/** One letter back to its queue, as a run of its own. The key makes asking again harmless. */
export function useRetryLetter() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, key }: { id: string; key: string }) =>
      told('post', '/api/v1/dlq/{letter_id}/retry', { path: { letter_id: id }, idempotencyKey: key }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ['runs'] });
      await lettersChanged(client);
    },
  });
}

export type Change = LetterChange['change'];

interface ExportAsked {
  selection: Selection;
  at_most?: number;
  whole?: boolean;
}

/** Every letter that matches as JSON lines, masked. */
export const exportLetters = async (asked: ExportAsked, signal?: AbortSignal) =>
  (await askRaw('post', '/api/v1/export', { body: asked, signal })).blob();

/** As it is; who asked, and why, is written down. */
export const exportUnmasked = async (asked: ExportAsked & { reason: string }, signal?: AbortSignal) =>
  (await askRaw('post', '/api/v1/export/unmasked', { body: asked, signal })).blob();
