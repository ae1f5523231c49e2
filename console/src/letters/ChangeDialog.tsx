import { Button, Skeleton } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { changeLetters, type Chosen } from '@/api/letter-lists';
import { lettersChanged } from '@/api/letters';
import type { Status } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { ProblemNote } from '@/shared/ProblemNote';
import { StatusBadge } from '@/shared/StatusBadge';
import { useToasts } from '@/shared/toasts';
import { allows, undoOf, type DecisionName } from './changes';
import { MOST_AT_ONCE, useLettersNow, type Now } from './useLettersNow';
import classes from './ChangeDialog.module.css';

interface Props {
  /** What is to be done; null: nothing, and the dialog is closed. */
  name: DecisionName | null;
  chosen: Chosen;
  onClose: () => void;
  onDone?: () => void;
}

/** A decision about letters: how many it is exactly, why, and a way back. */
export function ChangeDialog({ name, chosen, onClose, onDone }: Props) {
  const { letters: text } = useText();
  const [last, setLast] = useState<DecisionName>('resolve');
  if (name !== null && name !== last) setLast(name);
  const now = useLettersNow(chosen, name !== null);
  const able = now.found?.filter((each) => allows(last, each.status)) ?? [];
  const [progress, setProgress] = useState<number | null>(null);
  const carryOut = useCarryOut();
  const confirm = async (reason: string) => {
    if (able.length === 0) return;
    await carryOut(last, able, reason, setProgress);
    setProgress(null);
    onDone?.();
  };
  return (
    <ConfirmDialog
      opened={name !== null}
      onClose={() => {
        setProgress(null);
        onClose();
      }}
      title={text.change.title[last]}
      confirm={text.change.confirm[last](able.length)}
      danger={last === 'discard'}
      reason="required"
      ready={able.length > 0}
      onConfirm={confirm}
    >
      <p className={classes.what}>{text.change.what[last]}</p>
      <Found name={last} now={now} />
      {progress !== null && <Progress done={progress} of={able.length} />}
    </ConfirmDialog>
  );
}

function Progress({ done, of }: { done: number; of: number }) {
  const { letters: text } = useText();
  const format = useFormat();
  return <p role="status">{text.change.progress(format.number(done), format.number(of))}</p>;
}

function Found({ name, now }: { name: DecisionName; now: Now }) {
  const { letters: text } = useText();
  const format = useFormat();
  if (now.problem !== null) return <ProblemNote error={now.problem} />;
  if (now.tooMany) return <p role="alert">{text.change.tooMany(format.number(MOST_AT_ONCE))}</p>;
  if (now.found === null) {
    return (
      <div role="status">
        {text.change.counting(format.number(now.sofar))}
        <Skeleton height={14} width="60%" />
      </div>
    );
  }
  const skipped = new Map<Status, number>();
  for (const { status } of now.found) if (!allows(name, status)) skipped.set(status, (skipped.get(status) ?? 0) + 1);
  const total = [...skipped.values()].reduce((sum, each) => sum + each, 0);
  if (total === now.found.length) return <p role="alert">{text.change.none}</p>;
  if (total === 0) return null;
  return (
    <div className={classes.skipped}>
      {text.change.skipped(total)}
      {[...skipped].map(([status, count]) => (
        <span key={status} className={classes.status}>
          {format.number(count)} <StatusBadge status={status} />
        </span>
      ))}
    </div>
  );
}

type Carry = (name: DecisionName, able: { id: string; status: Status }[], reason: string, onProgress: (done: number) => void) => Promise<void>;

/** Does it, tells how it went, and offers the way back if there is one. */
function useCarryOut(): Carry {
  const { letters: text } = useText();
  const toast = useToasts();
  const client = useQueryClient();
  return async (name, able, reason, onProgress) => {
    const ids = able.map((each) => each.id);
    try {
      const { done, left } = await changeLetters(name, ids, reason, onProgress);
      const were = new Map(able.map((each) => [each.id, each.status]));
      const back = undoOf(name, done.map((id) => were.get(id) ?? 'PENDING'));
      const number = Object.keys(left).length;
      const told = [text.change.done[name](done.length), ...(number > 0 ? [text.change.left(number)] : [])].join('; ');
      const undo = async () => {
        if (back === null) return;
        const undone = await changeLetters(back, done, text.change.undoReason);
        await lettersChanged(client);
        toast.done(text.change.undone(undone.done.length));
      };
      toast.done(told, back !== null && done.length > 0 ? <Undo onClick={undo} /> : undefined);
    } finally {
      await lettersChanged(client);
    }
  };
}

function Undo({ onClick }: { onClick: () => Promise<void> }) {
  const { letters: text } = useText();
  const toast = useToasts();
  const [used, setUsed] = useState(false);
  const go = () => {
    setUsed(true);
    onClick().catch((problem: unknown) => {
      setUsed(false);
      toast.problem(problem);
    });
  };
  return (
    <Button size="compact-xs" disabled={used} onClick={go}>
      {text.change.undo}
    </Button>
  );
}
