import { VisuallyHidden } from '@mantine/core';
import { Link } from 'react-router';
import type { QueueOverview } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { addressOf } from '@/shared/address';
import { Count } from '@/shared/Count';
import { written } from '@/shared/filter-completion';
import table from '@/shared/table.module.css';
import { visible } from '@/shared/untrusted';
import { Untrusted } from '@/shared/Untrusted';
import { DeadLetters, FIGURES } from './DeadLetters';
import { QueueHealth } from './QueueHealth';
import classes from './QueuesPage.module.css';

export function QueueTable({ queues }: { queues: readonly QueueOverview[] }) {
  const { columns } = useText().queues;
  const numbers = [columns.letters, ...FIGURES.map((name) => columns[name]), columns.rate];
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{columns.name}</th>
          <th scope="col">{columns.health}</th>
          {numbers.map((each) => (
            <th key={each} scope="col" className={table.number}>
              {each}
            </th>
          ))}
          <th scope="col">{columns.links}</th>
        </tr>
      </thead>
      <tbody>
        {queues.map((queue) => (
          <QueueRow key={queue.name} queue={queue} />
        ))}
      </tbody>
    </table>
  );
}

function QueueRow({ queue }: { queue: QueueOverview }) {
  const { columns } = useText().queues;
  return (
    <tr>
      <td className={`${table.main ?? ''} ${classes.name ?? ''}`}>
        <Untrusted mono text={queue.name} most={120} />
        {queue.type !== null && (
          <span className={classes.type}>
            <Untrusted text={queue.type} most={40} />
          </span>
        )}
      </td>
      <td className={classes.health}>
        <QueueHealth queue={queue} />
      </td>
      <td className={table.number} data-label={columns.letters}>
        <DeadLetters queue={queue} />
      </td>
      {FIGURES.map((name) => (
        <td key={name} className={table.number} data-label={columns[name]}>
          {queue[name] === null ? <Unknown /> : <Count of={queue[name]} />}
        </td>
      ))}
      <td className={table.number} data-label={columns.rate}>
        <Rate value={queue.incoming} /> / <Rate value={queue.outgoing} />
      </td>
      <td className={classes.links}>
        <Links name={queue.name} />
      </td>
    </tr>
  );
}

/** What the broker does not tell is not 0. */
function Unknown() {
  const { queues: text } = useText();
  return (
    <span className="rd-dim" title={text.unknown}>
      <span aria-hidden>–</span>
      <VisuallyHidden>{text.unknown}</VisuallyHidden>
    </span>
  );
}

function Rate({ value }: { value: number | null }) {
  const format = useFormat();
  return value === null ? <Unknown /> : <>{format.number(Math.round(value * 10) / 10)}</>;
}

function Links({ name }: { name: string }) {
  const { queues: text } = useText();
  return (
    <>
      <Link to={paths.lettersBy(`queue:${written(name)}`)} aria-label={text.lettersOf(visible(name))}>
        {text.letters}
      </Link>
      <Link to={addressOf(paths.groups, { queue: name })} aria-label={text.groupsOf(visible(name))}>
        {text.groups}
      </Link>
    </>
  );
}
