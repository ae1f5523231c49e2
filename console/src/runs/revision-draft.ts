import type { LetterToEdit } from '@/api/letter-to-edit';
import { bodyDiffers, bodyOf, shownOf, writtenOf, type Bytes, type EditableBody } from './edit-body';
import { headersDiffer, rowsOf, type HeaderRow } from './header-rows';

/** What is edited, and on top of what. */
export interface RevisionDraft {
  /** The newest revision that is known of. */
  base: LetterToEdit;
  /** The body that the text was made of: its text, its bytes, what stands around it. */
  body: EditableBody;
  bytes: Bytes;
  text: string;
  rows: HeaderRow[];
  /** Counts what replaced the text from outside of the editor. */
  version: number;
  /** Whether somebody has to say whose version goes on. */
  undecided: boolean;
}

export function draftOf(base: LetterToEdit, bytes: Bytes = 'hex'): RevisionDraft {
  const body = bodyOf(base);
  return { base, body, bytes, text: shownOf(body, bytes), rows: rowsOf(base.headers), version: 0, undecided: false };
}

export function withText(draft: RevisionDraft, text: string): RevisionDraft {
  return { ...draft, text, version: draft.version + 1 };
}

const partOf = (body: EditableBody) => (body.kind === 'text' ? body.place.of : body.kind);

/** On top of a revision of somebody else. What was touched here stays; what was not is theirs. */
export function onTopOf(draft: RevisionDraft, theirs: LetterToEdit): RevisionDraft {
  const changed = bodyDiffers(draft.base, writtenOf(draft.body, draft.text, draft.bytes));
  const rows = headersDiffer(draft.base.headers, draft.rows) ? draft.rows : rowsOf(theirs.headers);
  const next = { ...draft, base: theirs, rows, undecided: true };
  const body = bodyOf(theirs);
  if (!changed) return withText({ ...next, body }, shownOf(body, draft.bytes));
  // A text that was typed as the data of an envelope is none of a body that has no envelope, or of bytes.
  return partOf(body) === partOf(draft.body) ? { ...next, body } : next;
}

export function showingAs(draft: RevisionDraft, bytes: Bytes): RevisionDraft {
  const { given } = writtenOf(draft.body, draft.text, draft.bytes);
  const body: EditableBody = given === null ? draft.body : { kind: 'bytes', base64: given.body };
  return withText({ ...draft, bytes }, shownOf(body, bytes));
}
