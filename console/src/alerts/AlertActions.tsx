import { Button, Menu } from '@mantine/core';
import { IconChevronDown } from '@tabler/icons-react';
import type { AlertDeed } from '@/api/alerts';
import type { Alert } from '@/api/types';
import { useText } from '@/locales/language';
import { useNow } from '@/shared/now';
import { Refusable } from '@/shared/Refusable';
import { EVERY_QUEUE, useRefusal } from '@/shared/session';
import { isFiring, isSnoozed, WAITS } from './alerts';
import classes from './alerts.module.css';

interface Props {
  alert: Alert;
  onAsk: (deed: AlertDeed) => void;
}

/** What can be done about it now: what is over can only be woken. One reason is told for all of them. */
export function AlertActions({ alert, onAsk }: Props) {
  const { actions: text } = useText().alerts;
  const refusal = useRefusal('groups:change', alert.queue === '' ? EVERY_QUEUE : alert.queue);
  const snoozed = isSnoozed(alert, useNow());
  const firing = isFiring(alert);
  if (!firing && !snoozed) return null;
  return (
    <Refusable reason={refusal}>
      {(disabled) => (
        <span className={classes.buttons}>
          {firing && alert.acknowledged_at === null && (
            <Button size="compact-sm" disabled={disabled} onClick={() => onAsk({ name: 'acknowledge' })}>
              {text.acknowledge}
            </Button>
          )}
          {snoozed ? (
            <Button size="compact-sm" disabled={disabled} onClick={() => onAsk({ name: 'wake' })}>
              {text.wake}
            </Button>
          ) : (
            <SnoozeMenu disabled={disabled} onAsk={onAsk} />
          )}
          {firing && (
            <Button size="compact-sm" disabled={disabled} onClick={() => onAsk({ name: 'resolve' })}>
              {text.resolve}
            </Button>
          )}
        </span>
      )}
    </Refusable>
  );
}

function SnoozeMenu({ disabled, onAsk }: { disabled: boolean; onAsk: (deed: AlertDeed) => void }) {
  const { actions: text, waits } = useText().alerts;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button size="compact-sm" disabled={disabled} rightSection={<IconChevronDown size={13} aria-hidden />}>
          {text.snooze}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {WAITS.map((wait) => (
          <Menu.Item key={wait} onClick={() => onAsk({ name: 'snooze', wait })}>
            {waits[wait]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
