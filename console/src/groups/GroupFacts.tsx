import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { FailureGroup, Status } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Count } from '@/shared/Count';
import { exactly, Instant } from '@/shared/Instant';
import { StatusBadge } from '@/shared/StatusBadge';
import strip from '@/shared/strip.module.css';
import classes from './GroupFacts.module.css';

const STATUSES: readonly Status[] = ['PENDING', 'QUARANTINED', 'REDRIVING', 'REDRIVEN', 'RESOLVED', 'DISCARDED'];

/** How many, since when, and what has become of them. */
export function GroupFacts({ group }: { group: FailureGroup }) {
  const { facts: text } = useText().groups;
  const format = useFormat();
  const told = STATUSES.filter((status) => (group.by_status[status] ?? 0) > 0);
  return (
    <dl className={['rd-panel', strip.strip, classes.facts].join(' ')}>
      <Fact name={text.pending} strong={group.pending > 0}>
        <Count of={group.pending} />
      </Fact>
      <Fact name={text.total}>
        <Count of={group.total} />
      </Fact>
      <Moment name={text.first} at={group.first_seen} />
      <Moment name={text.last} at={group.last_seen} />
      <div className={`${strip.cell ?? ''} ${classes.fact ?? ''}`} data-wide>
        <dt>{text.byStatus}</dt>
        <dd className={classes.statuses}>
          {told.map((status) => (
            <Link key={status} to={paths.lettersBy(`group:${group.id} status:${status}`)} className={classes.status}>
              <StatusBadge status={status} />
              {format.number(group.by_status[status] ?? 0)}
            </Link>
          ))}
        </dd>
      </div>
    </dl>
  );
}

function Fact({ name, strong = false, below, children }: { name: string; strong?: boolean; below?: ReactNode; children: ReactNode }) {
  return (
    <div className={`${strip.cell ?? ''} ${classes.fact ?? ''}`}>
      <dt>{name}</dt>
      <dd className={classes.value} data-strong={strong || undefined}>
        {children}
      </dd>
      {below !== undefined && <dd className={strip.below}>{below}</dd>}
    </div>
  );
}

function Moment({ name, at }: { name: string; at: string }) {
  const format = useFormat();
  const moment = new Date(at);
  return (
    <Fact name={name} below={<span title={exactly(moment)}>{`${format.day(moment)}, ${format.time(moment)}`}</span>}>
      <Instant at={at} brief />
    </Fact>
  );
}
