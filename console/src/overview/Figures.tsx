import { Skeleton } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Situation } from '@/api/insights';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Count } from '@/shared/Count';
import { exactly } from '@/shared/Instant';
import { useNow } from '@/shared/now';
import strip from '@/shared/strip.module.css';
import { OutcomeBar } from './OutcomeBar';
import classes from './Figures.module.css';

interface Props {
  situation: Situation | undefined;
  /** "in the last 24 hours" */
  when: string;
}

/** The numbers that answer whether it is bad, and whether it gets worse. */
export function Figures({ situation, when }: Props) {
  const { overview } = useText();
  const { figures: text } = overview;
  return (
    <section className={['rd-panel', strip.strip, classes.strip].join(' ')} aria-label={text.label}>
      <Figure title={text.pending}>{situation && <Pending situation={situation} />}</Figure>
      <Figure title={text.rate}>{situation && <Rate situation={situation} />}</Figure>
      <Figure title={text.oldest}>{situation && <Oldest at={situation.oldest_pending} />}</Figure>
      <Figure title={text.resolved}>{situation && <Resolved arrived={situation.arrived} when={when} />}</Figure>
      <Figure title={text.redriven} when={when} wide>
        {situation && <Redriven endings={situation.redriven} />}
      </Figure>
    </section>
  );
}

interface FigureProps {
  title: string;
  when?: string;
  wide?: boolean;
  children: ReactNode;
}

function Figure({ title, when, wide = false, children }: FigureProps) {
  return (
    <div className={strip.cell} data-wide={wide || undefined}>
      <h2 className={classes.title}>
        {title}
        {when !== undefined && <span className={classes.when}> {when}</span>}
      </h2>
      {children ?? (
        <>
          <Skeleton height={24} width={72} my={6} />
          <Skeleton height={11} width={110} />
        </>
      )}
    </div>
  );
}

interface ShownProps {
  value: ReactNode;
  below: ReactNode;
}

function Shown({ value, below }: ShownProps) {
  return (
    <>
      <div className={classes.value}>{value}</div>
      <div className={`${strip.below ?? ''} ${classes.below ?? ''}`}>{below}</div>
    </>
  );
}

function Pending({ situation }: { situation: Situation }) {
  const { figures } = useText().overview;
  const pending = situation.by_status.PENDING ?? 0;
  const held = situation.by_status.QUARANTINED ?? 0;
  const number = <Count of={pending} />;
  return (
    <Shown
      value={pending === 0 ? number : <Link to={paths.lettersBy('status:PENDING')}>{number}</Link>}
      below={held === 0 ? figures.nothingHeld : <Link to={paths.lettersBy('status:QUARANTINED')}>{figures.quarantined(held)}</Link>}
    />
  );
}

const MINUTES = 5;

function Rate({ situation }: { situation: Situation }) {
  const { overview, shared } = useText();
  const format = useFormat();
  const { last_5_minutes: recent, last_hour: hour } = situation;
  const written = format.number(Math.round((recent.number / MINUTES) * 10) / 10);
  const inHour = format.number(hour.number);
  return (
    <Shown
      value={<span title={overview.figures.rateOf}>{recent.exact ? written : shared.exact(written)}</span>}
      below={overview.figures.lastHour(hour.exact ? inHour : shared.exact(inHour))}
    />
  );
}

function Oldest({ at }: { at: string | null }) {
  const { figures } = useText().overview;
  const format = useFormat();
  const now = useNow();
  if (at === null) return <Shown value="–" below={figures.noOldest} />;
  const moment = new Date(at);
  return (
    <Shown
      value={<span title={exactly(moment)}>{format.duration(Math.max(1, (now - moment.getTime()) / 1000))}</span>}
      below={<span title={exactly(moment)}>{figures.since(`${format.day(moment)}, ${format.time(moment)}`)}</span>}
    />
  );
}

function Resolved({ arrived, when }: { arrived: Situation['arrived']; when: string }) {
  const { figures } = useText().overview;
  const format = useFormat();
  const total = Object.values(arrived).reduce((sum, each) => sum + each, 0);
  const resolved = arrived.RESOLVED ?? 0;
  if (total === 0) return <Shown value="–" below={figures.noneArrived} />;
  return (
    <Shown
      value={format.percent(resolved / total)}
      below={`${figures.resolvedOf(format.number(resolved), format.number(total))} ${when}`}
    />
  );
}

function Redriven({ endings }: { endings: Situation['redriven'] }) {
  const { figures } = useText().overview;
  const number = <Count of={{ number: endings.redrives, exact: endings.exact }} />;
  return (
    <Shown
      value={endings.redrives === 0 ? number : <Link to={paths.runs}>{number}</Link>}
      below={endings.redrives === 0 ? figures.noRedrives : <OutcomeBar outcomes={endings.outcomes} />}
    />
  );
}
