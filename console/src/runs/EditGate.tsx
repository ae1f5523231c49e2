import { Button, TextInput } from '@mantine/core';
import { IconEyeCheck } from '@tabler/icons-react';
import { useRevise } from '@/api/letters';
import type { Letter } from '@/api/types';
import { useText } from '@/locales/language';
import { ProblemNote } from '@/shared/ProblemNote';
import { Permitted } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { Untrusted } from '@/shared/Untrusted';
import classes from './dialogs.module.css';

interface Props {
  letter: Letter;
  reason: string;
  onReason: (reason: string) => void;
  busy: boolean;
  error: unknown;
  onReveal: () => void;
  onOperations: () => void;
  onClose: () => void;
  onSaved: (number: number) => void;
}

/** Before the editor: why somebody wants to see the real text. */
export function EditGate({ letter, reason, onReason, busy, error, onReveal, onOperations, onClose, onSaved }: Props) {
  const { runs, shared } = useText();
  const text = runs.edit.gate;
  const editable = letter.status === 'PENDING' && letter.unreadable === null;
  const ready = editable && reason.trim() !== '';
  return (
    <form
      noValidate
      className={classes.gate}
      onSubmit={(event) => {
        event.preventDefault();
        if (ready && !busy) onReveal();
      }}
    >
      <div className={classes.gateWords}>
        <IconEyeCheck size={22} stroke={1.6} aria-hidden />
        <div>
          <h3>{text.title}</h3>
          <p>{text.what}</p>
        </div>
      </div>
      {letter.status !== 'PENDING' && <p className={classes.warning}>{text.status(shared.status[letter.status].toLowerCase())}</p>}
      {letter.unreadable !== null && (
        <p className={classes.warning}>
          <Untrusted text={letter.unreadable} most={200} />
        </p>
      )}
      <TextInput
        label={runs.edit.reason}
        description={runs.edit.reasonHelp}
        value={reason}
        maxLength={1000}
        required
        autoFocus
        onChange={(event) => onReason(event.currentTarget.value)}
      />
      {error !== null && <ProblemNote error={error} />}
      <div className={classes.buttons}>
        <Button size="sm" onClick={onClose}>
          {shared.cancel}
        </Button>
        <Permitted to="letters:edit" queue={letter.queue}>
          {(refused) => (
            <Button size="sm" disabled={refused || !editable} title={text.operationsHelp} onClick={onOperations}>
              {text.operations}
            </Button>
          )}
        </Permitted>
        <Permitted to="letters:edit" queue={letter.queue}>
          {(noEdit) => (
            <Permitted to="letters:reveal" queue={letter.queue}>
              {(noReveal) => (
                <Button size="sm" type="submit" variant="filled" disabled={noEdit || noReveal || !ready} loading={busy}>
                  {text.reveal}
                </Button>
              )}
            </Permitted>
          )}
        </Permitted>
      </div>
      {letter.revision > 0 && editable && <TakeBack letter={letter} reason={reason} onSaved={onSaved} />}
    </form>
  );
}

/** Earlier revisions, by their number alone: nothing has to be seen for it. */
function TakeBack({ letter, reason, onSaved }: Pick<Props, 'letter' | 'reason' | 'onSaved'>) {
  const { runs } = useText();
  const text = runs.edit.gate;
  const toasts = useToasts();
  const revise = useRevise(letter.id);
  const back = (to: number) =>
    revise.mutate(
      { edit: { reason: reason.trim(), revert_to: to }, etag: `"${letter.revision}"` },
      {
        onSuccess: ({ number }) => {
          toasts.done(runs.edit.saved(number));
          onSaved(number);
        },
      },
    );
  const button = (to: number, words: string) => (
    <Permitted to="letters:edit" queue={letter.queue}>
      {(refused) => (
        <Button disabled={refused || reason.trim() === ''} loading={revise.isPending} onClick={() => back(to)}>
          {words}
        </Button>
      )}
    </Permitted>
  );
  return (
    <div className={classes.takeBack}>
      <h3>{text.back}</h3>
      <p className={classes.note}>{text.backHelp}</p>
      {revise.error !== null && <ProblemNote error={revise.error} />}
      <div className={classes.row}>
        {letter.revision > 1 && button(letter.revision - 1, text.toPrevious(letter.revision - 1))}
        {button(0, text.toOriginal)}
      </div>
    </div>
  );
}
