import { Tooltip } from '@mantine/core';
import type { ReactElement } from 'react';
import session from '@/shared/session.module.css';

interface Props {
  /** Why it cannot be done; null: it can. */
  reason: string | null;
  children: (disabled: boolean) => ReactElement;
}

/** As `Permitted`, for every other reason: what cannot be done now is shown disabled, and says why. */
export function Refusable({ reason, children }: Props) {
  if (reason === null) return children(false);
  return (
    <Tooltip label={reason} events={{ hover: true, focus: true, touch: true }}>
      <span tabIndex={0} role="group" aria-label={reason} className={session.refused}>
        {children(true)}
      </span>
    </Tooltip>
  );
}
