import { Button, Skeleton } from '@mantine/core';
import { IconExternalLink, IconPencil } from '@tabler/icons-react';
import { lazy, Suspense, useState, type ReactNode } from 'react';
import type { FailureGroup } from '@/api/types';
import { useText } from '@/locales/language';
import { Permitted } from '@/shared/session';
import { Untrusted } from '@/shared/Untrusted';
import { Section } from '@/shared/Section';
import { VerdictMark } from './GroupMarks';
import { webAddress } from './state';
import classes from './Notes.module.css';

const NotesForm = lazy(async () => ({ default: (await import('./NotesForm')).NotesForm }));

/** What people know about the group: who owns it, what to do with it, where it is written down. */
export function Notes({ group }: { group: FailureGroup }) {
  const { notes: text } = useText().groups;
  const [editing, setEditing] = useState(false);
  if (editing) {
    return (
      <Section title={text.title}>
        <Suspense fallback={<Skeleton height={240} />}>
          <NotesForm group={group} onDone={() => setEditing(false)} />
        </Suspense>
      </Section>
    );
  }
  const edit = (
    <Permitted to="groups:change" queue={group.queue}>
      {(disabled) => (
        <Button size="compact-xs" leftSection={<IconPencil size={13} aria-hidden />} disabled={disabled} onClick={() => setEditing(true)}>
          {text.edit}
        </Button>
      )}
    </Permitted>
  );
  const said = [group.owner, group.verdict, group.note, group.runbook].some((each) => each !== null);
  return (
    <Section title={text.title} more={edit}>
      {said ? <Said group={group} /> : <p className={classes.none}>{text.empty}</p>}
    </Section>
  );
}

function Said({ group }: { group: FailureGroup }) {
  const { notes: text } = useText().groups;
  return (
    <dl className={classes.said}>
      <Line name={text.owner}>{group.owner === null ? <span className="rd-dim">{text.nobody}</span> : <Untrusted text={group.owner} most={256} />}</Line>
      {group.verdict !== null && (
        <Line name={text.verdict}>
          <VerdictMark verdict={group.verdict} />
        </Line>
      )}
      {group.runbook !== null && (
        <Line name={text.runbook}>
          <Runbook text={group.runbook} />
        </Line>
      )}
      {group.note !== null && (
        <Line name={text.note}>
          <Untrusted block text={group.note} most={8192} />
        </Line>
      )}
    </dl>
  );
}

function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={classes.line}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A link if it is a web address, and text if it is anything else. */
function Runbook({ text: written }: { text: string }) {
  const { notes: text } = useText().groups;
  const address = webAddress(written);
  if (address === null) {
    return (
      <span title={text.notALink}>
        <Untrusted text={written} most={300} />
      </span>
    );
  }
  return (
    <a href={address} target="_blank" rel="noopener noreferrer" className={classes.runbook}>
      <Untrusted text={written} most={300} />
      <IconExternalLink size={13} stroke={1.8} aria-hidden />
    </a>
  );
}
