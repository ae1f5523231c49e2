import { useState } from 'react';
import { useChangeAlert, type AlertDeed } from '@/api/alerts';
import type { Alert } from '@/api/types';
import { useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { known } from '@/shared/known';
import { useToasts } from '@/shared/toasts';
import { Untrusted } from '@/shared/Untrusted';
import { useFocusBack } from '@/shared/useFocusBack';
import { linkId } from './alerts';
import classes from './alerts.module.css';

/** What somebody is about to do, and about which one. */
export interface Asked {
  alert: Alert;
  deed: AlertDeed;
}

/** Asks before something is done about an alert. It stays though the row of the alert moves or goes meanwhile. */
export function AlertDialog({ asked, onClose }: { asked: Asked | null; onClose: () => void }) {
  // What is asked stays in the dialog while it fades.
  const [last, setLast] = useState(asked);
  if (asked !== null && asked !== last) setLast(asked);
  return last === null ? null : <Question {...last} opened={asked !== null} onClose={onClose} />;
}

interface Props extends Asked {
  opened: boolean;
  onClose: () => void;
}

function Question({ alert, deed, opened, onClose }: Props) {
  const change = useChangeAlert();
  const toasts = useToasts();
  const words = useWords(deed);
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={words.title}
      confirm={words.confirm}
      reason="optional"
      onConfirm={async (reason) => {
        await change.mutateAsync({ id: alert.id, deed, reason });
        toasts.done(words.done);
      }}
    >
      <About alert={alert} />
      <p className={classes.consequence}>{words.what}</p>
    </ConfirmDialog>
  );
}

function useWords(deed: AlertDeed): Record<'title' | 'what' | 'confirm' | 'done', string> {
  const { asked, waits } = useText().alerts;
  if (deed.name !== 'snooze') return asked[deed.name];
  const wait = known<string>(waits, deed.wait) ?? deed.wait;
  const { title, what, confirm, done } = asked.snooze;
  return { title, what: what(wait), confirm: confirm(wait), done: done(wait) };
}

/** The button that opened the dialog may be gone when it closes; the alert's link is there, maybe elsewhere. */
function About({ alert }: { alert: Alert }) {
  useFocusBack(() => document.getElementById(linkId(alert)));
  return (
    <p className={classes.about}>
      <Untrusted text={alert.title} most={200} />
    </p>
  );
}
