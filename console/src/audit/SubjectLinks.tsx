import { Link } from 'react-router';
import type { LedgerEntry } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { known } from '@/shared/known';
import { visible } from '@/shared/untrusted';
import { Untrusted } from '@/shared/Untrusted';
import classes from './LedgerTable.module.css';

type Subject = LedgerEntry['subject'];

const PLACES: Record<string, (id: string) => string> = { letters: paths.letter, run: paths.run, group: paths.group, alert: paths.alert };
const FEW = 2;
const SHORT = 13;

interface Props {
  subject: Subject;
  /** Every id that the row names, in full. */
  whole?: boolean;
}

/** What something was done to. Letters, runs, groups and alerts have pages; what has gone since says so there. */
export function SubjectLinks({ subject, whole = false }: Props) {
  const { audit: text } = useText();
  const named = whole ? subject.ids : subject.ids.slice(0, FEW);
  const others = subject.count - named.length;
  return (
    <span className={classes.ids}>
      {!whole && <Kind subject={subject} />}
      {subject.kind !== 'store' && named.map((id) => <Named key={id} kind={subject.kind} id={id} whole={whole} />)}
      {!whole && others > 0 && named.length > 0 && <span className="rd-dim">{text.subject.more(others)}</span>}
    </span>
  );
}

function Kind({ subject: { kind, count } }: { subject: Subject }) {
  const { audit: text } = useText();
  if (kind === 'letters' && count > 0) return <span className="rd-dim">{text.subject.letters(count)}</span>;
  const word = known(text.subject.kinds, kind);
  return <span className="rd-dim">{word ?? <Untrusted text={kind} most={40} />}</span>;
}

function Named({ kind, id, whole }: { kind: string; id: string; whole: boolean }) {
  const { audit: text } = useText();
  if (kind === 'denied') {
    const scopes: Record<string, string> = { everything: text.subject.everything, 'all queues': text.subject.allQueues };
    return <Untrusted text={known(scopes, id) ?? id} most={120} />;
  }
  const place = known(PLACES, kind);
  const shown = <Untrusted mono text={whole || id.length <= SHORT + 7 ? id : `${id.slice(0, SHORT)}…`} most={300} />;
  if (place === undefined) return shown;
  return (
    <Link to={place(id)} title={visible(id)}>
      {shown}
    </Link>
  );
}
