import { useQuery } from '@tanstack/react-query';
import { askRaw, told } from './client';
import { letterKeys } from './letters';
import type { components } from './schema';

export type LetterRedrive = components['schemas']['LetterRedrive'];

/** Other letters with the same correlation id, newest first. */
export function useRelated(id: string, limit = 50) {
  return useQuery({
    queryKey: [...letterKeys.one(id), 'related', limit],
    queryFn: ({ signal }) => told('get', '/api/v1/dlq/{letter_id}/related', { path: { letter_id: id }, query: { limit }, signal }),
  });
}

/** When it was sent back, by whom, and how that ended; newest first. */
export function useLetterRedrives(id: string, limit = 100) {
  return useQuery({
    queryKey: [...letterKeys.one(id), 'redrives', limit],
    queryFn: ({ signal }) => told('get', '/api/v1/dlq/{letter_id}/redrives', { path: { letter_id: id }, query: { limit }, signal }),
  });
}

/** All of it, however long its bodies are. */
export const wholeLetter = (id: string) => told('get', '/api/v1/dlq/{letter_id}', { path: { letter_id: id } });

/** The bytes of the current body: masked, or as they are if a reason is given, which is written down. */
export async function bodyOf(id: string, reason?: string): Promise<Uint8Array<ArrayBuffer>> {
  const path = { letter_id: id };
  const answer =
    reason === undefined
      ? await askRaw('get', '/api/v1/dlq/{letter_id}/body', { path })
      : await askRaw('post', '/api/v1/dlq/{letter_id}/body/reveal', { path, body: { reason } });
  return new Uint8Array(await answer.arrayBuffer());
}
