import { NativeSelect } from '@mantine/core';
import { useMemo, useState } from 'react';
import { bodyOf } from '@/api/letter-parts';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import { EmptyState } from '@/shared/EmptyState';
import { Body, type PayloadView } from './Body';
import { contentFrom, contentOf, isCut, type Content } from './content';
import { Unreadable } from './Unreadable';
import classes from './Payload.module.css';

interface Props {
  letter: Letter;
  /** Why it was revealed; undefined: it is masked. */
  revealed: string | undefined;
  view: string;
  onView: (view: PayloadView) => void;
}

/** What the message holds: the revision that would be sent, or any other. */
export function Payload({ letter, revealed, view, onView }: Props) {
  const { letters: text } = useText();
  const [picked, setPicked] = useState<number | null>(null);
  const number = picked ?? letter.revision;
  const isCurrent = number === letter.revision;
  const revision = letter.revisions.find((each) => each.number === number);
  const message = isCurrent ? letter.message : (revision?.message ?? letter.message);
  const unreadable = isCurrent ? letter.unreadable : (revision?.unreadable ?? null);
  const [whole, setWhole] = useState<{ of: object; content: Content } | null>(null);
  const told = useMemo(() => contentOf(message), [message]);
  const cut = useMemo(() => isCut(message), [message]);
  const loaded = whole?.of === message ? whole.content : null;
  const load = async (): Promise<Content> => {
    const content = contentFrom(await bodyOf(letter.id, revealed));
    setWhole({ of: message, content });
    return content;
  };
  return (
    <>
      {letter.revisions.length > 1 && <RevisionPicker letter={letter} number={number} onPick={(next) => setPicked(next === letter.revision ? null : next)} />}
      {unreadable !== null ? (
        <Unreadable why={unreadable} />
      ) : told === null ? (
        <EmptyState title={text.payload.none.title} what={text.payload.none.what} />
      ) : (
        <Body
          key={number}
          id={letter.id}
          content={loaded ?? told}
          size={message.body_size}
          cut={cut && loaded === null}
          onLoad={isCurrent ? load : undefined}
          isRevealed={revealed !== undefined}
          view={view}
          onView={onView}
        />
      )}
    </>
  );
}

function RevisionPicker({ letter, number, onPick }: { letter: Letter; number: number; onPick: (number: number) => void }) {
  const { letters: text } = useText();
  return (
    <NativeSelect
      size="xs"
      className={classes.revision ?? ''}
      aria-label={text.payload.revision}
      value={String(number)}
      data={letter.revisions.map((each) => ({
        value: String(each.number),
        label: each.number === 0 ? text.payload.original : text.payload.revisionNumber(each.number),
      }))}
      onChange={(event) => onPick(Number(event.currentTarget.value))}
    />
  );
}
