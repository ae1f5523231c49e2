import { IconMailbox, type Icon } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import classes from './states.module.css';

interface Props {
  title: string;
  /** What to do about it. */
  what?: ReactNode;
  icon?: Icon;
  action?: ReactNode;
}

export function EmptyState({ title, what, icon: Shape = IconMailbox, action }: Props) {
  return (
    <div className={classes.empty}>
      <Shape size={28} stroke={1.4} aria-hidden className={classes.icon} />
      <p className={classes.title}>{title}</p>
      {what !== undefined && <p className={classes.what}>{what}</p>}
      {action}
    </div>
  );
}
