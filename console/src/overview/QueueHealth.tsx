import { IconAlertTriangle } from '@tabler/icons-react';
import type { QueueOverview } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { DeadLetters, FIGURES, type Figure } from '@/queues/DeadLetters';
import { wordsOf } from '@/queues/health';
import { Count } from '@/shared/Count';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import classes from './QueueHealth.module.css';

/** Those with the most dead letters first, then those with the most to do. */
export function byNeed(queues: readonly QueueOverview[]): QueueOverview[] {
  return [...queues].sort(
    (one, other) => other.letters - one.letters || (other.ready ?? 0) - (one.ready ?? 0) || one.name.localeCompare(other.name),
  );
}

/** Only what the broker tells of at least one of them. */
function toldOf(queues: readonly QueueOverview[]): Figure[] {
  return FIGURES.filter((name) => queues.some((queue) => queue[name] !== null));
}

export function QueueHealth({ queues }: { queues: readonly QueueOverview[] }) {
  const { queues: text, overview } = useText();
  const figures = toldOf(queues);
  const rates = queues.some(({ incoming, outgoing }) => incoming !== null || outgoing !== null);
  const heads = [text.columns.letters, ...figures.map((name) => text.columns[name]), ...(rates ? [overview.queues.rate] : [])];
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{text.columns.name}</th>
          {heads.map((each) => (
            <th key={each} scope="col" className={table.number}>
              {each}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <Row key={queue.name} queue={queue} figures={figures} rates={rates} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ queue, figures, rates }: { queue: QueueOverview; figures: Figure[]; rates: boolean }) {
  const { queues: text, overview } = useText();
  const format = useFormat();
  const rate = (value: number | null) => (value === null ? '–' : format.number(Math.round(value * 10) / 10));
  const idle = wordsOf(queue).includes('idle');
  return (
    <tr>
      <td className={`${table.main ?? ''} ${classes.name ?? ''}`}>
        <Untrusted mono text={queue.name} most={100} />
      </td>
      <td className={table.number} data-label={text.columns.letters}>
        <DeadLetters queue={queue} />
      </td>
      {figures.map((name) => (
        <td key={name} className={table.number} data-label={text.columns[name]}>
          {name === 'consumers' && idle && (
            <IconAlertTriangle size={14} className={classes.warn} role="img" aria-label={text.noConsumer} />
          )}
          <Count of={queue[name]} />
        </td>
      ))}
      {rates && (
        <td className={table.number} data-label={overview.queues.rate}>
          {rate(queue.incoming)} / {rate(queue.outgoing)}
        </td>
      )}
    </tr>
  );
}
