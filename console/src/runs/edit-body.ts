import type { LetterToEdit } from '@/api/letter-to-edit';
import { base64Of, bytesOfBase64, bytesOfHex, folded, hexOf } from './byte-text';
import { jsonProblem, layoutOf, type Layout } from './json-layout';
import { placeOf, type PayloadPlace } from './payload-place';

/** Characters that an editor in a browser takes without making anybody wait. */
export const LONGEST = 2 * 1024 * 1024;

export type Bytes = 'hex' | 'base64';

/** A body as it is edited. */
export type EditableBody =
  | { kind: 'text'; place: PayloadPlace; layout: Layout; json: boolean }
  | { kind: 'bytes'; base64: string }
  | { kind: 'long'; body: string; encoding: 'utf-8' | 'base64' }
  | { kind: 'none' };

export function bodyOf({ letter }: LetterToEdit): EditableBody {
  const { body, body_encoding: encoding } = letter.message;
  if (body === null) return { kind: 'none' };
  if (body.length > LONGEST) return { kind: 'long', body, encoding: encoding ?? 'utf-8' };
  if (encoding === 'base64') return { kind: 'bytes', base64: body };
  const place = placeOf(body);
  return { kind: 'text', place, layout: layoutOf(place.text), json: jsonProblem(place.text) === null };
}

export function shownOf(body: EditableBody, bytes: Bytes): string {
  if (body.kind === 'none' || body.kind === 'long') return '';
  if (body.kind === 'text') return body.layout.shown;
  if (bytes === 'base64') return folded(body.base64);
  return hexOf(bytesOfBase64(body.base64) ?? new Uint8Array());
}

export interface Wrong {
  what: 'hex' | 'base64' | 'json' | 'was json';
  /** The first character that does not fit. */
  at: number;
}

export interface Written {
  /** What stands in the way of saving, or is worth a warning. */
  wrong: Wrong | null;
  /** As the server takes it; null while it cannot be saved. */
  given: { body: string; body_encoding: 'utf-8' | 'base64' } | null;
}

/** What was edited, as it would be saved: with all that stands around it, byte for byte. */
export function writtenOf(body: EditableBody, text: string, bytes: Bytes): Written {
  if (body.kind === 'bytes') {
    const found = bytes === 'hex' ? bytesOfHex(text) : bytesOfBase64(text);
    if (found === null) return { wrong: { what: bytes, at: 0 }, given: null };
    return { wrong: null, given: { body: base64Of(found), body_encoding: 'base64' } };
  }
  // What is not edited here stays what it is.
  if (body.kind === 'long') return { wrong: null, given: { body: body.body, body_encoding: body.encoding } };
  if (body.kind === 'none') return { wrong: null, given: { body: text, body_encoding: 'utf-8' } };
  const at = body.json || body.place.of === 'data' ? jsonProblem(text) : null;
  if (at !== null && body.place.of === 'data') return { wrong: { what: 'json', at }, given: null };
  const whole = body.place.before + body.layout.saved(text) + body.place.after;
  return { wrong: at === null ? null : { what: 'was json', at }, given: { body: whole, body_encoding: 'utf-8' } };
}

/** Whether saving would change the body. */
export function bodyDiffers(edited: LetterToEdit, written: Written): boolean {
  const { body, body_encoding: encoding } = edited.letter.message;
  if (written.given === null) return true;
  if (body === null) return written.given.body !== '';
  return written.given.body !== body || written.given.body_encoding !== (encoding ?? 'utf-8');
}

/** The line and character of a place, counted from 1. */
export function positionOf(text: string, at: number): [number, number] {
  const before = text.slice(0, at).split('\n');
  return [before.length, (before.at(-1)?.length ?? 0) + 1];
}
