import { bytesOf } from '@/shared/base64';

const LINE = 16;

export function hexOf(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += LINE) {
    lines.push(Array.from(bytes.subarray(at, at + LINE), (byte) => byte.toString(16).padStart(2, '0')).join(' '));
  }
  return lines.join('\n');
}

/** null: these are no pairs of hex digits. */
export function bytesOfHex(text: string): Uint8Array | null {
  const digits = text.replace(/\s+/g, '');
  if (digits.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(digits)) return null;
  return Uint8Array.from({ length: digits.length / 2 }, (_, at) => Number.parseInt(digits.slice(2 * at, 2 * at + 2), 16));
}

export function base64Of(bytes: Uint8Array): string {
  const parts: string[] = [];
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(parts.join(''));
}

export function base64OfText(text: string): string {
  return base64Of(new TextEncoder().encode(text));
}

/** Base64 in lines, so that a difference is seen where it is. */
export const folded = (base64: string) => base64.replace(/(.{76})(?=.)/g, '$1\n');

export function bytesOfBase64(text: string): Uint8Array | null {
  const bare = text.replace(/\s+/g, '');
  return bare.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(bare) ? bytesOf(bare) : null;
}
