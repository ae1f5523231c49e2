import { Button, Modal, TextInput } from '@mantine/core';
import { useMounted } from '@mantine/hooks';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { useFormat, useText } from '@/locales/language';
import { ProblemNote } from './ProblemNote';
import classes from './ConfirmDialog.module.css';

interface Props {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** What will happen, and how it can be undone. */
  children?: ReactNode;
  /** The words of the button. They name the exact number: "Discard 1,204 letters". */
  confirm: string;
  danger?: boolean;
  /** The reason is asked for; `required` refuses to go on without one. */
  reason?: 'required' | 'optional' | undefined;
  /** To be typed before the button can be pressed: the exact number of what cannot be undone. */
  typed?: number | undefined;
  /** False: what it is about is not known yet, or there is nothing to do. */
  ready?: boolean;
  onConfirm: (reason: string) => Promise<unknown>;
}

/** Stays open, with the problem, if what was confirmed fails. */
export function ConfirmDialog({ opened, onClose, title, ...asked }: Props) {
  const { shared } = useText();
  // One that is mounted open would not know where the focus was, and could not give it back.
  const mounted = useMounted();
  return (
    <Modal opened={opened && mounted} onClose={onClose} title={title} closeButtonProps={{ 'aria-label': shared.close }}>
      {opened && <Question {...asked} onClose={onClose} />}
    </Modal>
  );
}

type Asked = Omit<Props, 'opened' | 'title'>;

function Question({ children, confirm, danger = false, reason: wanted, typed, ready: known = true, onConfirm, onClose }: Asked) {
  const { shared } = useText();
  const format = useFormat();
  const [reason, setReason] = useState('');
  const [number, setNumber] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  // Whoever closes it does not wait: what was confirmed goes on, and must not close the next question.
  const open = useRef(true);
  useEffect(() => {
    open.current = true;
    return () => {
      open.current = false;
    };
  }, []);
  const digits = number.replace(/\D/g, '');
  const ready = known && (wanted !== 'required' || reason.trim() !== '') && (typed === undefined || digits === String(typed));
  const go = () => {
    if (!ready || busy) return;
    setBusy(true);
    setProblem(null);
    onConfirm(reason.trim())
      .then(() => open.current && onClose(), setProblem)
      .finally(() => setBusy(false));
  };
  return (
    <form
      className={classes.form}
      onSubmit={(event) => {
        event.preventDefault();
        go();
      }}
    >
      <div>{children}</div>
      {wanted !== undefined && (
        <TextInput
          label={shared.confirm.reason}
          description={shared.confirm.reasonHelp}
          value={reason}
          required={wanted === 'required'}
          maxLength={1000}
          data-autofocus
          onChange={(event) => setReason(event.currentTarget.value)}
        />
      )}
      {typed !== undefined && (
        <TextInput
          label={shared.confirm.typeCount(format.number(typed))}
          value={number}
          inputMode="numeric"
          autoComplete="off"
          onChange={(event) => setNumber(event.currentTarget.value)}
        />
      )}
      {problem !== null && <ProblemNote error={problem} />}
      <div className={classes.buttons}>
        <Button size="sm" onClick={onClose}>
          {shared.cancel}
        </Button>
        <Button size="sm" type="submit" variant="filled" color={danger ? 'red' : 'teal'} disabled={!ready} loading={busy}>
          {confirm}
        </Button>
      </div>
    </form>
  );
}
