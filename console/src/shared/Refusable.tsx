import { Tooltip } from '@mantine/core';
import type { ReactElement } from 'react';
import classes from './Refusable.module.css';

interface Props {
  /** Why it cannot be done; null: it can. */
  reason: string | null;
  /** A button or an input; it is told whether it is disabled. */
  children: (disabled: boolean) => ReactElement;
}

/** What cannot be done now is shown all the same, disabled, with the reason on hover and focus. */
export function Refusable({ reason, children }: Props) {
  if (reason === null) return children(false);
  return (
    <Tooltip label={reason} events={{ hover: true, focus: true, touch: true }}>
      <span tabIndex={0} role="group" aria-label={reason} className={classes.refused}>
        {children(true)}
      </span>
    </Tooltip>
  );
}
