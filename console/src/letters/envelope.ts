import { indexOf, Kind, meaning, type JsonIndex } from '@/shared/json-index';

/** Beyond it a body is no envelope to the server either. */
const LARGEST = 1024 * 1024;
const FIELDS = ['message_id', 'timestamp', 'version', 'queue', 'data', 'metadata'];

export interface Envelope {
  /** The text of `data`, as it is written. */
  data: string;
  correlation: string | null;
}

function children(index: JsonIndex, node: number): Map<string, number> {
  const found = new Map<string, number>();
  for (let child = node + 1, at = 0; at < index.children(node); at++, child = index.after(child)) {
    const key = index.keyOf(child);
    if (key !== null) found.set(meaning(key), child);
  }
  return found;
}

const textOf = (index: JsonIndex, node: number) => index.text.slice(index.start(node), index.end(node));

/** What a message of ours holds; null: it is somebody else's, or no JSON. */
export function envelopeOf(body: string): Envelope | null {
  if (body.length > LARGEST || !body.startsWith('{')) return null;
  try {
    const index = indexOf(body);
    const fields = children(index, 0);
    const data = fields.get('data');
    if (data === undefined || !FIELDS.every((name) => fields.has(name))) return null;
    return { data: textOf(index, data), correlation: correlationIn(index, fields.get('metadata')) };
  } catch {
    return null;
  }
}

function correlationIn(index: JsonIndex, metadata: number | undefined): string | null {
  if (metadata === undefined || index.kind(metadata) !== Kind.object) return null;
  const named = children(index, metadata);
  const node = named.get('correlation_id') ?? named.get('correlationId');
  return node !== undefined && index.kind(node) === Kind.string ? meaning(textOf(index, node)) : null;
}
