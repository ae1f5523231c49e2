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
  // What was asked about when the dialog opened: the number in the button does not move under the finger.
  const [asked, setAsked] = useState<Asked>({ how: 'sent', count: 0 });
  const [opened, setOpened] = useState(false);
  const ask = (how: Settling['how']) => {
    setAsked({ how, count: run.in_doubt });
    setOpened(true);
  };
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
          <Permitted to="runs:make">{(refused) => <Button disabled={refused} onClick={() => ask('send again')}>{text.again}</Button>}</Permitted>
          <Permitted to="runs:make">{(refused) => <Button disabled={refused} onClick={() => ask('sent')}>{text.sent}</Button>}</Permitted>
        </div>
      </div>
      <SettleQuestion id={run.id} asked={asked} opened={opened} onClose={() => setOpened(false)} />
    </section>
  );
}

interface Asked {
  how: Settling['how'];
  count: number;
}

interface Props {
  id: string;
  asked: Asked;
  opened: boolean;
  onClose: () => void;
}

function SettleQuestion({ id, asked: { how, count }, opened, onClose }: Props) {
  const { runs } = useText();
  const text = runs.doubt;
  const settle = useSettleRun(id);
  const toasts = useToasts();
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
