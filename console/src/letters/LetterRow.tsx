import { Checkbox } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { LetterLine } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Count } from '@/shared/Count';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import { shortType } from '@/shared/short-type';
import { StatusBadge } from '@/shared/StatusBadge';
import { Untrusted } from '@/shared/Untrusted';
import { visible } from '@/shared/untrusted';
import { useVisibleRow } from '@/shared/useCursor';
import table from '@/shared/table.module.css';
import { NUMERIC, type ColumnName } from './columns';
import classes from './LetterTable.module.css';

const CELLS: Record<ColumnName, (letter: LetterLine) => ReactNode> = {
  status: (letter) => <StatusBadge status={letter.status} />,
  queue: (letter) => <Untrusted mono text={letter.queue} most={80} />,
  handler: (letter) => <Untrusted mono text={letter.handler} most={80} />,
  kind: (letter) => <Kind of={letter.kind} />,
  attempts: (letter) => <Count of={letter.attempts} />,
  generation: (letter) => <Count of={letter.generation} />,
  revision: (letter) => <Count of={letter.revision} />,
  group: (letter) => (
    <Link to={paths.group(letter.group_id)} className="rd-mono">
      <Untrusted text={letter.group_id} most={8} />
    </Link>
  ),
  message: (letter) => <Untrusted mono text={letter.message_id} most={40} />,
  id: (letter) => <Untrusted mono text={letter.id} />,
  failed: (letter) => <Instant at={letter.last_attempt_at} brief />,
  changed: (letter) => <Instant at={letter.changed_at} brief />,
  when: (letter) => <Instant at={letter.created_at} brief />,
};

function Kind({ of }: { of: string }) {
  const { letters } = useText();
  return <Untrusted text={known<string>(letters.kinds, of) ?? of} most={40} />;
}

interface Props {
  letter: LetterLine;
  columns: readonly ColumnName[];
  /** Whether keys have chosen it. */
  current: boolean;
  selected: boolean;
  onSelect: (id: string, range: boolean) => void;
  filter: string;
}

export function LetterRow({ letter, columns, current, selected, onSelect, filter }: Props) {
  const { letters: text } = useText();
  const ref = useVisibleRow(current);
  const name = visible(`${shortType(letter.type)} ${letter.text}`).slice(0, 80);
  return (
    <tr ref={ref} data-chosen={current || undefined} data-selected={selected || undefined} className={classes.row}>
      <td className={classes.pick}>
        <Checkbox
          size="xs"
          aria-label={text.select.one(name)}
          checked={selected}
          onChange={(event) => onSelect(letter.id, (event.nativeEvent as MouseEvent).shiftKey)}
        />
      </td>
      <td className={`${table.main ?? ''} ${classes.main ?? ''}`}>
        <Link to={paths.letter(letter.id)} state={{ filter }} className={table.link}>
          <span className={table.strong}>
            <Untrusted text={shortType(letter.type)} most={120} />
          </span>
          {letter.text !== '' && (
            <span className={table.clamp}>
              <Untrusted text={letter.text} most={300} />
            </span>
          )}
        </Link>
      </td>
      {columns.map((column) => (
        <td key={column} className={NUMERIC.has(column) ? table.number : classes.cell} data-label={text.columns[column]}>
          {CELLS[column](letter)}
        </td>
      ))}
    </tr>
  );
}
