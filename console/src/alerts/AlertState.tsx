import { IconBellZ, IconUserCheck } from '@tabler/icons-react';
import type { Alert } from '@/api/types';
import { useText } from '@/locales/language';
import { Instant } from '@/shared/Instant';
import { useNow } from '@/shared/now';
import { Untrusted } from '@/shared/Untrusted';
import { isFiring, isSnoozed } from './alerts';
import classes from './alerts.module.css';

const NAME = 60;

/** Who sees to it, and until when nobody is told of it. */
export function AlertState({ alert }: { alert: Alert }) {
  const { state: text } = useText().alerts;
  const snoozed = isSnoozed(alert, useNow());
  if (isFiring(alert) && alert.acknowledged_by === null && !snoozed) return <span className={classes.nobody}>{text.nobody}</span>;
  return (
    <>
      {alert.acknowledged_by !== null && <SeenTo by={alert.acknowledged_by} at={alert.acknowledged_at} />}
      {alert.held && <span className={classes.line}>{text.held}</span>}
      {snoozed && alert.snoozed_until !== null && (
        <span className={classes.line}>
          <IconBellZ size={14} stroke={1.8} aria-hidden />
          <span>
            {text.snoozed} <Untrusted text={alert.snoozed_by ?? ''} most={NAME} />, {text.wakes} <Instant at={alert.snoozed_until} />
          </span>
        </span>
      )}
    </>
  );
}

/** Whoever resolved it without having acknowledged it before is named without a moment. */
function SeenTo({ by, at }: { by: string; at: string | null }) {
  const { state: text } = useText().alerts;
  return (
    <span className={classes.line}>
      <IconUserCheck size={14} stroke={1.8} aria-hidden />
      <span>
        {at === null ? text.resolved : text.acknowledged} <Untrusted text={by} most={NAME} />
        {at !== null && (
          <>
            , <Instant at={at} brief />
          </>
        )}
      </span>
    </span>
  );
}
