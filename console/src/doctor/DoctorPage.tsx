import { Button } from '@mantine/core';
import { IconLock, IconStethoscope } from '@tabler/icons-react';
import { useExamination, useLook } from '@/api/doctor';
import type { Examination } from '@/api/types';
import { useText } from '@/locales/language';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { Instant } from '@/shared/Instant';
import { PageHeader } from '@/shared/PageHeader';
import { Section } from '@/shared/Section';
import { useSession } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { FindingTable } from './FindingTable';
import { byPlace, counted } from './findings';
import { LevelBadge } from './LevelBadge';
import classes from './DoctorPage.module.css';

/** Every place where a message may be lost. It is looked at when somebody says so, not when the page is opened. */
export function DoctorPage() {
  const { doctor: text } = useText();
  const me = useSession();
  // What is found is about every queue, about servers and folders.
  if (me.permissions['access:manage']?.includes('*') === true) return <Examined />;
  return (
    <>
      <PageHeader title={text.title} />
      <div className="rd-panel">
        <EmptyState {...text.locked} icon={IconLock} />
      </div>
    </>
  );
}

function Examined() {
  const { doctor: text } = useText();
  const query = useExamination();
  const look = useLook();
  const { done, problem } = useToasts();
  const running = query.data?.running === true;
  const at = query.data?.at ?? null;
  const begin = (
    <Button
      loading={running || look.isPending}
      leftSection={<IconStethoscope size={15} aria-hidden />}
      onClick={() => look.mutate(undefined, { onSuccess: (told) => !told.running && done(text.kept), onError: problem })}
    >
      {text.look}
    </Button>
  );
  return (
    <>
      <PageHeader
        title={text.title}
        {...(at === null ? {} : { aside: <>{text.looked} <Instant at={at} /></> })}
        actions={begin}
      />
      <p role="status" className={classes.running}>{running ? text.running : ''}</p>
      <DataState
        query={query}
        isEmpty={(told) => told.at === null}
        empty={
          <div className="rd-panel">
            <EmptyState {...text.never} icon={IconStethoscope} />
          </div>
        }
      >
        {(told) => <Found examination={told} />}
      </DataState>
    </>
  );
}

function Found({ examination: { findings } }: { examination: Examination }) {
  const { doctor: text } = useText();
  return (
    <>
      <p className={classes.counts}>
        {counted(findings).map(([level, count]) => (
          <LevelBadge key={level} level={level} count={count} />
        ))}
      </p>
      {byPlace(findings).map(([place, found]) => (
        <div key={place} className={classes.place}>
          <Section title={text.place[place]} flush>
            <FindingTable findings={found} />
          </Section>
        </div>
      ))}
    </>
  );
}
