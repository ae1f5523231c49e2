import { IconRefresh, IconSparkles } from '@tabler/icons-react';
import type { SeenGroup } from '@/api/insights';
import { GroupCause, PendingCell } from '@/groups/GroupCause';
import { useText } from '@/locales/language';
import { Count } from '@/shared/Count';
import { Instant } from '@/shared/Instant';
import { useNow } from '@/shared/now';
import { Sparkline } from '@/shared/Sparkline';
import table from '@/shared/table.module.css';
import { useVisibleRow } from '@/shared/useCursor';
import classes from './SeenGroups.module.css';

interface Props {
  seen: readonly SeenGroup[];
  /** The row that keys have chosen; -1: none. */
  at: number;
}

/** Causes of the chosen time: new ones first, then those that return. */
export function SeenGroups({ seen, at }: Props) {
  const { columns } = useText().overview.broken;
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{columns.cause}</th>
          <th scope="col" className={`${table.trend ?? ''} ${classes.trend ?? ''}`}>
            {columns.trend}
          </th>
          <th scope="col" className={table.number}>
            {columns.letters}
          </th>
          <th scope="col" className={table.number}>
            {columns.pending}
          </th>
          <th scope="col" className={table.number}>
            {columns.last}
          </th>
        </tr>
      </thead>
      <tbody>
        {seen.map((each, row) => (
          <Row key={each.group.id} seen={each} chosen={row === at} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ seen, chosen }: { seen: SeenGroup; chosen: boolean }) {
  const { broken } = useText().overview;
  const { group, letters } = seen;
  const ref = useVisibleRow(chosen);
  return (
    <tr ref={ref} data-chosen={chosen || undefined}>
      <GroupCause group={group} first={<Appeared seen={seen} />} />
      <td className={`${table.trend ?? ''} ${classes.trend ?? ''}`}>
        <Sparkline values={group.trend} label={broken.trendOf} />
      </td>
      <td className={table.number} data-label={broken.columns.letters}>
        <Count of={letters} />
      </td>
      <PendingCell group={group} label={broken.columns.pending} />
      <td className={`${table.number ?? ''} ${classes.last ?? ''}`}>
        <Instant at={group.last_seen} brief />
      </td>
    </tr>
  );
}

function Appeared({ seen }: { seen: SeenGroup }) {
  const { broken } = useText().overview;
  return (
    <>
      <Mark seen={seen} />
      {seen.appearance === 'new' && (
        <span className={classes.first}>
          {broken.firstSeen} <Instant at={seen.group.first_seen} />
        </span>
      )}
    </>
  );
}

const A_DAY = 86_400_000;

/** In a range of weeks much is new; only what is of today is red. */
function Mark({ seen }: { seen: SeenGroup }) {
  const { broken } = useText().overview;
  const now = useNow();
  if (seen.appearance === 'known') return null;
  const isNew = seen.appearance === 'new';
  const fresh = isNew && now - Date.parse(seen.group.first_seen) < A_DAY;
  const Shape = isNew ? IconSparkles : IconRefresh;
  return (
    <span className={isNew ? classes.new : classes.returning} data-fresh={fresh || undefined} title={seen.why === null ? undefined : broken.why[seen.why]}>
      <Shape size={12} stroke={2} aria-hidden />
      {isNew ? broken.new : broken.returning}
    </span>
  );
}
