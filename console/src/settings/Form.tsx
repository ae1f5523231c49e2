import { Button, Modal } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { useText } from '@/locales/language';
import { ProblemNote } from '@/shared/ProblemNote';
import classes from './Settings.module.css';

interface Props {
  title: string;
  onClose: () => void;
  /** The words of the button. */
  submit: string;
  ready: boolean;
  onSubmit: () => Promise<unknown>;
  children: ReactNode;
}

/**
 * A dialog with fields. It stays open, with the problem, if what was asked for fails; and until the answer is there:
 * what it tells may be told once.
 */
export function FormDialog({ title, onClose, submit, ready, onSubmit, children }: Props) {
  const { shared } = useText();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const go = () => {
    if (!ready || busy) return;
    setBusy(true);
    setProblem(null);
    onSubmit()
      .catch(setProblem)
      .finally(() => setBusy(false));
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      size="lg"
      closeOnEscape={!busy}
      closeOnClickOutside={!busy}
      closeButtonProps={{ 'aria-label': shared.close, disabled: busy }}
    >
      <form
        className={classes.form}
        autoComplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          go();
        }}
      >
        {children}
        {problem !== null && <ProblemNote error={problem} />}
        <div className={classes.buttons}>
          <Button size="sm" disabled={busy} onClick={onClose}>
            {shared.cancel}
          </Button>
          <Button size="sm" type="submit" variant="filled" disabled={!ready} loading={busy}>
            {submit}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
