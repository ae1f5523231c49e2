import { known } from '@/shared/known';

/** Header values as the API has them, for people: exactly, and with a word for what JSON does not know. */
export interface HeaderText {
  text: string;
  type: 'text' | 'number' | 'bytes' | 'time' | 'table' | 'word';
}

const MARKS: Record<string, (content: string) => HeaderText> = {
  base64: (content) => ({ text: plainBytes(content), type: 'bytes' }),
  time: (content) => ({ text: content, type: 'time' }),
  int: (content) => ({ text: bigOf(content), type: 'number' }),
  float: (content) => ({ text: content, type: 'number' }),
};

/** `-0x10` is what no BigInt reads. */
function bigOf(hex: string): string {
  try {
    return hex.startsWith('-') ? `-${BigInt(hex.slice(1))}` : String(BigInt(hex));
  } catch {
    return hex;
  }
}

function plainBytes(base64: string): string {
  try {
    const bytes = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text;
  } catch {
    return `base64 ${base64}`;
  }
}

export function headerText(value: unknown): HeaderText {
  if (typeof value === 'string') return { text: value, type: 'text' };
  if (typeof value === 'number' || typeof value === 'bigint') return { text: String(value), type: 'number' };
  if (value === null || typeof value === 'boolean') return { text: String(value), type: 'word' };
  const [only, ...others] = typeof value === 'object' ? Object.entries(value as Record<string, unknown>) : [];
  const [mark, content] = only ?? ['', null];
  const read = Array.isArray(value) || others.length > 0 || typeof content !== 'string' ? undefined : known(MARKS, mark);
  return read === undefined ? { text: exactJson(value), type: 'table' } : read(content as string);
}

/** As JSON, with integers of any length. */
export function exactJson(value: unknown, space?: number): string {
  const big = new Map<string, string>();
  const mark = crypto.getRandomValues(new Uint32Array(2)).join('-');
  const text = JSON.stringify(
    value,
    (_key, each: unknown) => {
      if (typeof each !== 'bigint') return each;
      const name = `${mark}-${big.size}`;
      big.set(name, String(each));
      return name;
    },
    space,
  );
  return big.size === 0 ? text : text.replace(new RegExp(`"(${mark}-\\d+)"`, 'g'), (_, name: string) => big.get(name) ?? '');
}
