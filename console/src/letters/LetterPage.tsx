import { useEffect, useState } from 'react';
import { Link, useLocation, useParams } from 'react-router';
import { useLetter, useReveal, type LetterWithTag } from '@/api/letters';
import { problemFrom } from '@/api/problem';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { LazyEditDialog, LazyRedriveDialog } from '@/runs/LazyDialogs';
import { CopyButton } from '@/shared/CopyButton';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { written } from '@/shared/filter-completion';
import { useKeys } from '@/shared/keys';
import { PageHeader } from '@/shared/PageHeader';
import { shortType } from '@/shared/short-type';
import { StatusBadge } from '@/shared/StatusBadge';
import { Untrusted } from '@/shared/Untrusted';
import { visible } from '@/shared/untrusted';
import type { DecisionName } from './changes';
import { Facts } from './Facts';
import { LazyChangeDialog } from './LazyChangeDialog';
import { LetterActions, useRefusalOf } from './LetterActions';
import { LetterNotes } from './LetterNotes';
import { LetterTabs } from './LetterTabs';
import { useFollowed } from './useFollowed';
import classes from './LetterPage.module.css';

/** One letter: what failed, with what, and everything that happened to it. */
export function LetterPage() {
  const { letters: text } = useText();
  const { id = '' } = useParams();
  const query = useLetter(id);
  if (query.error !== null && query.data === undefined && problemFrom(query.error).status === 404) {
    return (
      <>
        <PageHeader title={text.letter.one} above={<WayBack />} />
        <EmptyState title={text.letter.missing.title} what={text.letter.missing.what} />
      </>
    );
  }
  return (
    <DataState query={query} lines={12}>
      {(data) => <LetterShown key={id} found={data} />}
    </DataState>
  );
}

function WayBack() {
  const { letters: text } = useText();
  const { state } = useLocation() as { state: { filter?: string } | null };
  return <Link to={paths.lettersBy(state?.filter ?? '')}>{text.letter.back}</Link>;
}

/** Its status, its queue and its id, at a glance. */
function Standing({ letter }: { letter: Letter }) {
  const { letters: text } = useText();
  return (
    <span className={classes.standing}>
      <StatusBadge status={letter.status} />
      <Link to={paths.lettersBy(`queue:${written(letter.queue)}`)}>
        <Untrusted mono text={letter.queue} most={80} />
      </Link>
      <span className={classes.id}>
        <Untrusted mono text={letter.id} />
        <CopyButton value={letter.id} title={text.facts.copyLetter} />
      </span>
    </span>
  );
}

function LetterShown({ found }: { found: LetterWithTag }) {
  const { letters: text } = useText();
  const { letter: masked } = found;
  const reveal = useReveal(masked.id);
  useFollowed(masked);
  const { data: seen, reset } = reveal;
  // What was revealed is not told as what it is now: whoever wants to see that reveals it again.
  const outdated = seen !== undefined && (seen.revision < masked.revision || seen.deliveries < masked.deliveries);
  useEffect(() => {
    if (outdated) reset();
  }, [outdated, reset]);
  const letter = outdated ? masked : (seen ?? masked);
  const [open, setOpen] = useState<'redrive' | 'edit' | null>(null);
  const [deciding, setDeciding] = useState<DecisionName | null>(null);
  const mayRedrive = useRefusalOf(masked, 'redrive', 'runs:make') === null;
  const mayEdit = useRefusalOf(masked, 'edit', 'letters:edit') === null;
  useKeys([
    { key: 'r', label: text.act.redrive, run: () => mayRedrive && setOpen('redrive') },
    { key: 'e', label: text.act.edit, run: () => mayEdit && setOpen('edit') },
  ]);
  const close = () => setOpen(null);
  return (
    <>
      <PageHeader
        tab={visible(shortType(masked.type)).slice(0, 60)}
        above={<WayBack />}
        title={<Untrusted text={shortType(letter.type)} most={200} />}
        aside={<Standing letter={masked} />}
        actions={<LetterActions letter={masked} onRedrive={() => setOpen('redrive')} onEdit={() => setOpen('edit')} onDecide={setDeciding} />}
      />
      {letter.text !== '' && (
        <p className={classes.text}>
          <Untrusted text={letter.text} most={400} />
        </p>
      )}
      <LetterNotes letter={masked} />
      <div className={classes.body}>
        <LetterTabs letter={letter} reveal={reveal} />
        <Facts letter={letter} />
      </div>
      <LazyRedriveDialog opened={open === 'redrive'} selection={{ ids: [masked.id] }} count={1} onClose={close} />
      <LazyEditDialog opened={open === 'edit'} letter={masked} onClose={close} onSaved={() => reveal.reset()} />
      <LazyChangeDialog name={deciding} chosen={{ ids: [masked.id] }} onClose={() => setDeciding(null)} />
    </>
  );
}
