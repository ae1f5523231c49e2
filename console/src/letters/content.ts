import type { Letter, MessageJson } from '@/api/types';
import { bytesOf } from '@/shared/base64';

/** What a body holds: text, or bytes that are none. */
export type Content = { text: string } | { bytes: Uint8Array<ArrayBuffer> };

export const bytesIn = (content: Content): Uint8Array<ArrayBuffer> =>
  'bytes' in content ? content.bytes : new TextEncoder().encode(content.text);

/** Null: the message has no body. */
export function contentOf({ body, body_encoding: encoding }: MessageJson): Content | null {
  if (body === null) return null;
  return encoding === 'base64' ? { bytes: (bytesOf(body) ?? new Uint8Array()).slice() } : { text: body };
}

/** Bytes as text, if that is what they are. */
export function contentFrom(bytes: Uint8Array<ArrayBuffer>): Content {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { bytes };
  }
}

function toldBytes({ body, body_encoding: encoding }: MessageJson): number {
  if (body === null) return 0;
  return encoding === 'base64' ? (bytesOf(body)?.length ?? 0) : new TextEncoder().encode(body).length;
}

/** Whether only the beginning of its body was told. Small ones are not counted byte by byte. */
export const isCut = (message: MessageJson): boolean => message.body_size > SMALL && toldBytes(message) < message.body_size;

/** Whether anything of it was. */
export const isLetterCut = (letter: Letter): boolean => [letter, ...letter.revisions].some(({ message }) => isCut(message));

const SMALL = 1024 * 1024;
