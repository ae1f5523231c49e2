import { JsonIndex, Kind, NotJson } from '@/shared/json-index';

export interface PayloadPlace {
  /** `data`: an envelope of ours stands around it. */
  of: 'data' | 'whole';
  before: string;
  text: string;
  after: string;
}

const ENVELOPE = ['message_id', 'timestamp', 'version', 'source', 'queue', 'data', 'metadata', 'error', 'retry_count'];
const TEXTS = new Set(['message_id', 'timestamp', 'version', 'source', 'queue']);

/**
 * What a handler sees of a body. The parts put together are the body, byte for byte: saving sends all of it, so it does
 * not matter whether the server would take it for an envelope as well.
 */
export function placeOf(body: string): PayloadPlace {
  const data = dataOf(body);
  if (data === null) return { of: 'whole', before: '', text: body, after: '' };
  return { of: 'data', before: body.slice(0, data[0]), text: body.slice(...data), after: body.slice(data[1]) };
}

function dataOf(body: string): [number, number] | null {
  if (!body.startsWith('{')) return null;
  const index = new JsonIndex(body);
  try {
    index.step(Number.POSITIVE_INFINITY);
  } catch (error) {
    if (error instanceof NotJson) return null;
    throw error;
  }
  const found = new Map<string, number>();
  let child = 1;
  for (let left = index.children(0); left > 0; left--) {
    const key = JSON.parse(index.keyOf(child) ?? '""') as string;
    if (found.has(key)) return null;
    found.set(key, child);
    child = index.after(child);
  }
  const fits = ENVELOPE.every((name) => {
    const node = found.get(name);
    return node !== undefined && (!TEXTS.has(name) || index.kind(node) === Kind.string);
  });
  const data = found.get('data');
  return fits && data !== undefined ? [index.start(data), index.end(data)] : null;
}
