import { Button } from '@mantine/core';
import { IconQuestionMark } from '@tabler/icons-react';
import { useState } from 'react';
import { useSettleRun, type Settling } from '@/api/runs';
import type { RunJson } from '@/api/types';
import { useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { Permitted } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import page from './run-page.module.css';

/** Letters that may have been sent: somebody has to decide. */
export function DoubtPanel({ run }: { run: RunJson }) {
  const { runs } = useText();
  const text = runs.doubt;
  const [how, setHow] = useState<Settling['how'] | null>(null);
  if (run.in_doubt === 0) return null;
  return (
    <section className={page.why} data-status="PAUSED" aria-label={text.title(run.in_doubt)}>
      <IconQuestionMark size={18} stroke={1.8} aria-hidden />
      <div>
        <p>
          <strong>{text.title(run.in_doubt)}</strong>
        </p>
        <p className="rd-dim">{text.what}</p>
        <div className={page.row}>
          <Permitted to="runs:make">{(refused) => <Button disabled={refused} onClick={() => setHow('send again')}>{text.again}</Button>}</Permitted>
          <Permitted to="runs:make">{(refused) => <Button disabled={refused} onClick={() => setHow('sent')}>{text.sent}</Button>}</Permitted>
        </div>
      </div>
      <SettleQuestion run={run} how={how ?? 'sent'} opened={how !== null} onClose={() => setHow(null)} />
    </section>
  );
}

interface Props {
  run: RunJson;
  how: Settling['how'];
  opened: boolean;
  onClose: () => void;
}

function SettleQuestion({ run, how, opened, onClose }: Props) {
  const { runs } = useText();
  const text = runs.doubt;
  const settle = useSettleRun(run.id);
  const toasts = useToasts();
  // What was asked about when the dialog opened: the number in the button does not move under the finger.
  const count = run.in_doubt;
  const again = how === 'send again';
  const all = async (reason: string) => {
    let settled = 0;
    // The server settles some at a time.
    while (settled < count) {
      const answer = await settle.mutateAsync({ how, reason });
      const now = answer.taken_as_sent + answer.outcomes.length;
      if (now === 0) break;
      settled += now;
    }
    toasts.done(text.settled(settled));
  };
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={again ? text.againTitle(count) : text.sentTitle(count)}
      confirm={again ? text.againButton(count) : text.sentButton(count)}
      reason={again ? 'optional' : 'required'}
      onConfirm={all}
    >
      {again ? text.againWhat : text.sentWhat}
    </ConfirmDialog>
  );
}
