import { IconArrowDown } from '@tabler/icons-react';
import type { GroupOrder } from '@/api/insights';
import type { FailureGroup } from '@/api/types';
import { useText } from '@/locales/language';
import { Count } from '@/shared/Count';
import { Instant } from '@/shared/Instant';
import { Sparkline } from '@/shared/Sparkline';
import table from '@/shared/table.module.css';
import { useVisibleRow } from '@/shared/useCursor';
import { GroupCause, PendingCell } from './GroupCause';
import { StateMark, VerdictMark } from './GroupMarks';
import { stateOf } from './state';
import classes from './GroupTable.module.css';

interface Props {
  groups: readonly FailureGroup[];
  /** The row that keys have chosen; -1: none. */
  at: number;
  sort: GroupOrder;
  onSort: (order: GroupOrder) => void;
}

export function GroupTable({ groups, at, sort, onSort }: Props) {
  const { columns } = useText().groups;
  const by = (order: GroupOrder, label: string) => <SortHead label={label} on={sort === order} onSort={() => onSort(order)} />;
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{columns.cause}</th>
          <th scope="col" className={`${table.trend ?? ''} ${classes.trend ?? ''}`}>
            {columns.trend}
          </th>
          {by('pending', columns.pending)}
          {by('total', columns.total)}
          <SortHead label={columns.first} on={sort === 'first_seen'} onSort={() => onSort('first_seen')} less />
          {by('last_seen', columns.last)}
        </tr>
      </thead>
      <tbody>
        {groups.map((group, row) => (
          <GroupRow key={group.id} group={group} chosen={row === at} />
        ))}
      </tbody>
    </table>
  );
}

interface SortProps {
  label: string;
  on: boolean;
  onSort: () => void;
  /** The first to go where there is little room. */
  less?: boolean;
}

function SortHead({ label, on, onSort, less = false }: SortProps) {
  return (
    <th scope="col" className={`${table.number ?? ''} ${less ? (classes.less ?? '') : ''}`} aria-sort={on ? 'descending' : undefined}>
      <button type="button" className={classes.sort} data-on={on || undefined} onClick={onSort}>
        {on && <IconArrowDown size={12} stroke={2.2} aria-hidden />}
        {label}
      </button>
    </th>
  );
}

function GroupRow({ group, chosen }: { group: FailureGroup; chosen: boolean }) {
  const { groups: text } = useText();
  const ref = useVisibleRow(chosen);
  return (
    <tr ref={ref} data-chosen={chosen || undefined}>
      <GroupCause
        group={group}
        first={<StateMark state={stateOf(group)} />}
        last={group.verdict !== null && <VerdictMark verdict={group.verdict} />}
      />
      <td className={`${table.trend ?? ''} ${classes.trend ?? ''}`}>
        <Sparkline values={group.trend} label={text.trendOf} />
      </td>
      <PendingCell group={group} label={text.columns.pending} />
      <td className={table.number} data-label={text.columns.total}>
        <Count of={group.total} />
      </td>
      <td className={`${table.number ?? ''} ${classes.less ?? ''}`} data-label={text.columns.first}>
        <Instant at={group.first_seen} brief />
      </td>
      <td className={table.number} data-label={text.columns.last}>
        <Instant at={group.last_seen} brief />
      </td>
    </tr>
  );
}
