import { Button } from '@mantine/core';
import { IconEye, IconEyeOff } from '@tabler/icons-react';
import { useState } from 'react';
import type { useReveal } from '@/api/letters';
import { useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { Permitted, useSession } from '@/shared/session';
import classes from './Payload.module.css';

interface Props {
  queue: string;
  reveal: ReturnType<typeof useReveal>;
}

/** Whether what is shown is masked, and the way to see it as it is: with a reason, and written down. */
export function Masking({ queue, reveal }: Props) {
  const { letters: text } = useText();
  const me = useSession();
  const [asking, setAsking] = useState(false);
  const revealed = reveal.data !== undefined;
  return (
    <div className={classes.bar} data-revealed={revealed || undefined} role="status">
      {revealed ? <IconEye size={15} aria-hidden /> : <IconEyeOff size={15} aria-hidden />}
      <span>{revealed ? text.payload.revealed : text.payload.masked}</span>
      {revealed ? (
        <Button size="compact-xs" onClick={() => reveal.reset()}>
          {text.payload.hide}
        </Button>
      ) : (
        <Permitted to="letters:reveal" queue={queue}>
          {(disabled) => (
            <Button size="compact-xs" disabled={disabled} onClick={() => setAsking(true)}>
              {text.payload.reveal}
            </Button>
          )}
        </Permitted>
      )}
      <ConfirmDialog
        opened={asking}
        onClose={() => setAsking(false)}
        title={text.payload.revealTitle}
        confirm={text.payload.revealConfirm}
        reason="required"
        onConfirm={(reason) => reveal.mutateAsync(reason)}
      >
        {text.payload.revealWhat(me.name)}
      </ConfirmDialog>
    </div>
  );
}
