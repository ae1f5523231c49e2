import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { FailureGroup } from '@/api/types';
import { paths } from '@/routes/paths';
import { Count } from '@/shared/Count';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import { GroupTitle } from './GroupTitle';
import classes from './GroupCause.module.css';

type Group = Pick<FailureGroup, 'id' | 'title' | 'queue' | 'handler' | 'owner' | 'pending'>;

interface Props {
  group: Group;
  /** Before and behind what every list tells of it. */
  first?: ReactNode;
  last?: ReactNode;
}

/** The cell of a list that names a group: its cause, where it fails, and whose it is. */
export function GroupCause({ group, first, last }: Props) {
  return (
    <td className={`${table.main ?? ''} ${classes.cause ?? ''}`}>
      <Link to={paths.group(group.id)} className={classes.link}>
        <GroupTitle title={group.title} />
      </Link>
      <span className={classes.meta}>
        {first}
        <Untrusted mono text={group.queue} most={60} />
        {group.handler !== '' && <Untrusted text={group.handler} most={60} />}
        {group.owner !== null && <Untrusted text={`@${group.owner}`} most={40} />}
        {last}
      </span>
    </td>
  );
}

export function PendingCell({ group, label }: { group: Group; label: string }) {
  return (
    <td className={table.number} data-label={label}>
      <span className={group.pending === 0 ? table.dim : table.waiting}>
        <Count of={group.pending} />
      </span>
    </td>
  );
}
