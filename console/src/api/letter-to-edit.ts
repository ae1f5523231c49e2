import { useMutation } from '@tanstack/react-query';
import { JsonIndex } from '@/shared/json-index';
import { askRaw, told } from './client';
import { parseExact } from './exact-json';
import type { EditedSample, Letter } from './types';

declare const unmasked: unique symbol;

/**
 * A letter as it really is. Only revealing makes one: what lists and pages show may be masked, and a masked text that
 * was saved would be lost data.
 */
export interface LetterToEdit {
  readonly [unmasked]: true;
  readonly letter: Letter;
  readonly etag: string;
  /** Names, and values as the JSON text that the server wrote: `1.0` stays `1.0`. */
  readonly headers: readonly (readonly [string, string])[];
}

function* childrenOf(index: JsonIndex, node: number): Generator<number> {
  let child = node + 1;
  for (let left = index.children(node); left > 0; left--) {
    yield child;
    child = index.after(child);
  }
}

function member(index: JsonIndex, node: number, name: string): number | undefined {
  return [...childrenOf(index, node)].find((each) => index.keyOf(each) === `"${name}"`);
}

/** The headers of a letter's message, by the text of the answer. */
export function headerTexts(answer: string): [string, string][] {
  const index = new JsonIndex(answer);
  index.step(Number.POSITIVE_INFINITY);
  const message = member(index, 0, 'message');
  const headers = message === undefined ? undefined : member(index, message, 'headers');
  if (headers === undefined) return [];
  const textOf = (node: number | undefined) => (node === undefined ? 'null' : answer.slice(index.start(node), index.end(node)));
  return [...childrenOf(index, headers)].map((pair) => {
    const [name, value] = childrenOf(index, pair);
    return [JSON.parse(textOf(name)) as string, textOf(value)];
  });
}

/** Unmasked, to be edited; who looked, and why, is written down. Kept in memory alone. */
export function useRevealToEdit(id: string) {
  return useMutation({
    mutationFn: async (reason: string): Promise<LetterToEdit> => {
      const response = await askRaw('post', '/api/v1/dlq/{letter_id}/reveal', { path: { letter_id: id }, body: { reason } });
      const text = await response.text();
      const letter = parseExact(text) as Letter;
      const etag = response.headers.get('etag') ?? `"${letter.revision}"`;
      return { letter, etag, headers: headerTexts(text) } as unknown as LetterToEdit;
    },
    gcTime: 0,
  });
}

/** Where a new payload does not fit a JSON Schema. The server checks; nothing is stored. */
export function useCheckPayload(id: string) {
  return useMutation({
    mutationFn: async ({ payload, schema }: { payload: string; schema: string }): Promise<EditedSample | undefined> => {
      const run = { selection: { ids: [id] }, edit: [{ op: 'set-payload' as const, payload }], schema };
      return (await told('post', '/api/v1/run-plans/samples', { body: { run, ids: [id] } })).items[0];
    },
    gcTime: 0,
  });
}
