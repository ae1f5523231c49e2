import { Link } from 'react-router';
import type { QueueOverview } from '@/api/types';
import { paths } from '@/routes/paths';
import { Count } from '@/shared/Count';
import { written } from '@/shared/filter-completion';
import table from '@/shared/table.module.css';

/** What brokers tell of their queues, as far as they do. */
export const FIGURES = ['ready', 'delayed', 'unacked', 'consumers'] as const;
export type Figure = (typeof FIGURES)[number];

/** How many letters of a queue wait for a person, and the way to them. */
export function DeadLetters({ queue: { name, letters } }: { queue: QueueOverview }) {
  if (letters === 0) return <span className={table.dim}>0</span>;
  return (
    <Link to={paths.lettersBy(`queue:${written(name)} status:PENDING,QUARANTINED`)} className={table.waiting}>
      <Count of={letters} />
    </Link>
  );
}
