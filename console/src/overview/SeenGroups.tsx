import { IconRefresh, IconSparkles } from '@tabler/icons-react';
import { Link } from 'react-router';
import type { SeenGroup } from '@/api/insights';
import { GroupTitle } from '@/groups/GroupTitle';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Count } from '@/shared/Count';
import { Instant } from '@/shared/Instant';
import { useNow } from '@/shared/now';
import { Sparkline } from '@/shared/Sparkline';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
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
          <th scope="col" className={classes.trend}>
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
      <td className={`${table.main ?? ''} ${classes.cause ?? ''}`}>
        <Link to={paths.group(group.id)} className={classes.link}>
          <GroupTitle title={group.title} />
        </Link>
        <span className={classes.meta}>
          <Mark seen={seen} />
          {seen.appearance === 'new' && (
            <span className={classes.first}>
              {broken.firstSeen} <Instant at={group.first_seen} />
            </span>
          )}
          <Untrusted mono text={group.queue} most={60} />
          {group.handler !== '' && <Untrusted text={group.handler} most={60} />}
          {group.owner !== null && <Untrusted text={`@${group.owner}`} most={40} />}
        </span>
      </td>
      <td className={classes.trend}>
        <Sparkline values={group.trend} label={broken.trendOf} />
      </td>
      <td className={table.number} data-label={broken.columns.letters}>
        <Count of={letters} />
      </td>
      <td className={table.number} data-label={broken.columns.pending}>
        <span className={group.pending === 0 ? table.dim : classes.pending}>
          <Count of={group.pending} />
        </span>
      </td>
      <td className={`${table.number ?? ''} ${classes.last ?? ''}`}>
        <Instant at={group.last_seen} brief />
      </td>
    </tr>
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
