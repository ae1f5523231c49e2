import { useEffect, useMemo, useState } from 'react';
import { useRevealToEdit, type LetterToEdit } from '@/api/letter-to-edit';
import { useRevise } from '@/api/letters';
import { problemFrom } from '@/api/problem';
import { bodyDiffers, bodyOf, shownOf, writtenOf, type Bytes } from './edit-body';
import { givenHeaders, headersDiffer, type HeaderRow } from './header-rows';
import { oneLine, pretty } from './json-layout';
import { draftOf, onTopOf, showingAs, withText } from './revision-draft';

const OUTDATED = 412;

/** What is edited, on top of which revision, and how it is saved. */
export function useRevision(first: LetterToEdit, onDirty: (dirty: boolean) => void) {
  const [draft, setDraft] = useState(() => draftOf(first));
  const { base, body, bytes, text, rows, undecided } = draft;
  const revise = useRevise(first.letter.id);
  const look = useRevealToEdit(first.letter.id);
  const original = useMemo(() => shownOf(bodyOf(base), bytes), [base, bytes]);
  const written = useMemo(() => writtenOf(body, text, bytes), [body, text, bytes]);
  const payloadChanged = bodyDiffers(base, written);
  const headersChanged = headersDiffer(base.headers, rows);
  const dirty = payloadChanged || headersChanged;
  useEffect(() => onDirty(dirty), [dirty, onDirty]);

  const outdated = async (reason: string) => {
    const theirs = await look.mutateAsync(reason);
    revise.reset();
    // Of the draft as it is by then: whoever waits for an answer types on.
    setDraft((now) => onTopOf(now, theirs));
  };
  const save = async (reason: string): Promise<number | null> => {
    if (written.given === null || undecided) return null;
    look.reset();
    const edit = {
      reason,
      ...(payloadChanged ? written.given : {}),
      ...(headersChanged ? { headers: givenHeaders(rows) } : {}),
    };
    try {
      return (await revise.mutateAsync({ edit, etag: base.etag })).number;
    } catch (error) {
      // What fails here is told by `error`.
      if (problemFrom(error).status === OUTDATED) await outdated(reason).catch(() => undefined);
      return null;
    }
  };
  return {
    ...draft,
    original,
    written,
    payloadChanged,
    headersChanged,
    dirty,
    busy: revise.isPending || look.isPending,
    error: look.error ?? revise.error,
    setText: (next: string) => setDraft((now) => ({ ...now, text: next })),
    setRows: (next: HeaderRow[]) => setDraft((now) => ({ ...now, rows: next })),
    save,
    format: () => setDraft((now) => withText(now, pretty(oneLine(now.text, '')))),
    showAs: (next: Bytes) => setDraft((now) => showingAs(now, next)),
    keepMine: () => setDraft((now) => ({ ...now, undecided: false })),
    takeTheirs: () => setDraft((now) => ({ ...draftOf(now.base, now.bytes), version: now.version + 1 })),
  };
}

export type Revision = ReturnType<typeof useRevision>;
