import { useEffect, useMemo, useState } from 'react';
import { useRevealToEdit, type LetterToEdit } from '@/api/letter-to-edit';
import { useRevise } from '@/api/letters';
import { problemFrom } from '@/api/problem';
import { bodyDiffers, bodyOf, shownOf, writtenOf, type Bytes } from './edit-body';
import { givenHeaders, headersDiffer, rowsOf } from './header-rows';
import { oneLine, pretty } from './json-layout';

const OUTDATED = 412;

/** What is edited, on top of which revision, and how it is saved. */
export function useRevision(first: LetterToEdit, onDirty: (dirty: boolean) => void) {
  const [base, setBase] = useState(first);
  const [bytes, setBytes] = useState<Bytes>('hex');
  const [text, setText] = useState(() => shownOf(bodyOf(first), 'hex'));
  const [rows, setRows] = useState(() => rowsOf(first.headers));
  /** Counts what replaced the text from outside of the editor. */
  const [version, setVersion] = useState(0);
  const [undecided, setUndecided] = useState(false);
  const revise = useRevise(first.letter.id);
  const look = useRevealToEdit(first.letter.id);
  const body = useMemo(() => bodyOf(base), [base]);
  const original = useMemo(() => shownOf(body, bytes), [body, bytes]);
  const written = useMemo(() => writtenOf(body, text, bytes), [body, text, bytes]);
  const payloadChanged = bodyDiffers(base, written);
  const headersChanged = headersDiffer(base.headers, rows);
  const dirty = payloadChanged || headersChanged;
  useEffect(() => onDirty(dirty), [dirty, onDirty]);

  const put = (next: string) => {
    setText(next);
    setVersion((old) => old + 1);
  };
  const outdated = async (reason: string) => {
    const theirs = await look.mutateAsync(reason);
    // What was not touched here is theirs; and a text cannot be compared with bytes.
    if (!payloadChanged || bodyOf(theirs).kind !== body.kind) put(shownOf(bodyOf(theirs), bytes));
    if (!headersChanged) setRows(rowsOf(theirs.headers));
    setBase(theirs);
    revise.reset();
    setVersion((old) => old + 1);
    setUndecided(true);
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
    base,
    body,
    bytes,
    text,
    original,
    written,
    rows,
    version,
    undecided,
    payloadChanged,
    headersChanged,
    dirty,
    busy: revise.isPending || look.isPending,
    error: look.error ?? revise.error,
    setText,
    setRows,
    save,
    format: () => put(pretty(oneLine(text, ''))),
    showAs: (next: Bytes) => {
      setBytes(next);
      const now = writtenOf(body, text, bytes).given;
      put(now === null ? shownOf(body, next) : shownOf({ kind: 'bytes', base64: now.body }, next));
    },
    keepMine: () => setUndecided(false),
    takeTheirs: () => {
      put(original);
      setRows(rowsOf(base.headers));
      setUndecided(false);
    },
  };
}

export type Revision = ReturnType<typeof useRevision>;
