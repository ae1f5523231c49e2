import { Button } from '@mantine/core';
import { IconBan, IconCheck, IconPlayerPause, IconPlayerPlay, IconX, type Icon } from '@tabler/icons-react';
import { useState } from 'react';
import { useDecideRun, type Decision } from '@/api/runs';
import type { Permission, RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { Refusable } from '@/shared/Refusable';
import { Permitted, useSession } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { RunWhat } from './RunWhat';
import { samePerson } from './people';
import { cameBack, unsentOf } from './run-figures';

const POSSIBLE: Partial<Record<RunJson['status'], readonly Decision[]>> = {
  AWAITING_APPROVAL: ['cancel', 'reject', 'approve'],
  RUNNING: ['cancel', 'pause'],
  PAUSED: ['cancel', 'resume'],
};
const SHAPES: Record<Decision, Icon> = { pause: IconPlayerPause, resume: IconPlayerPlay, cancel: IconBan, approve: IconCheck, reject: IconX };
const NEEDED: Record<Decision, Permission> = {
  pause: 'runs:make',
  resume: 'runs:make',
  cancel: 'runs:make',
  approve: 'runs:approve',
  reject: 'runs:approve',
};

/** What can be decided about a run now. Nothing happens without a confirmation. */
export function RunActions({ run }: { run: RunJson }) {
  const [deciding, setDeciding] = useState<Decision | null>(null);
  // What is asked stays in the dialog while it fades.
  const [last, setLast] = useState<Decision>('pause');
  const open = (decision: Decision) => {
    setDeciding(decision);
    setLast(decision);
  };
  return (
    <>
      {(POSSIBLE[run.status] ?? []).map((each) => (
        <DecisionButton key={each} run={run} decision={each} onClick={() => open(each)} />
      ))}
      <Question run={run} decision={last} opened={deciding !== null} onClose={() => setDeciding(null)} />
    </>
  );
}

function DecisionButton({ run, decision, onClick }: { run: RunJson; decision: Decision; onClick: () => void }) {
  const { runs } = useText();
  const me = useSession();
  const Shape = SHAPES[decision];
  const own = decision === 'approve' && samePerson(run.requested_by, me.name);
  const main = decision === 'approve' || decision === 'resume';
  const button = (disabled: boolean) => (
    <Button
      size="sm"
      variant={main ? 'filled' : 'default'}
      disabled={disabled}
      leftSection={<Shape size={15} aria-hidden />}
      onClick={onClick}
    >
      {runs.actions[decision]}
    </Button>
  );
  return (
    <Permitted to={NEEDED[decision]} {...(run.selection.queue === null ? {} : { queue: run.selection.queue })}>
      {(refused) => <Refusable reason={own && !refused ? runs.actions.own : null}>{(mine) => button(refused || mine)}</Refusable>}
    </Permitted>
  );
}

interface QuestionProps {
  run: RunJson;
  decision: Decision;
  opened: boolean;
  onClose: () => void;
}

function Question({ run, decision, opened, onClose }: QuestionProps) {
  const { runs } = useText();
  const text = runs.actions;
  const decide = useDecideRun(run.id);
  const toasts = useToasts();
  const left = unsentOf(run);
  const words: Record<Decision, { title: string; confirm: string }> = {
    pause: { title: text.pauseTitle, confirm: text.pauseButton },
    resume: { title: text.resumeTitle, confirm: text.resumeButton(left) },
    cancel: { title: text.cancelTitle, confirm: text.cancelButton(left) },
    approve: { title: text.approveTitle, confirm: text.approveButton(run.total) },
    reject: { title: text.rejectTitle, confirm: text.rejectButton(run.total) },
  };
  return (
    <ConfirmDialog
      opened={opened}
      onClose={onClose}
      title={words[decision].title}
      confirm={words[decision].confirm}
      danger={decision === 'cancel' || decision === 'reject'}
      reason={decision === 'cancel' || decision === 'reject' ? 'required' : 'optional'}
      onConfirm={async (reason) => {
        await decide.mutateAsync({ decision, reason });
        toasts.done(text.done[decision]);
      }}
    >
      <Consequence run={run} decision={decision} left={left} />
    </ConfirmDialog>
  );
}

function Consequence({ run, decision, left }: { run: RunJson; decision: Decision; left: number }) {
  const { runs, shared } = useText();
  const text = runs.actions;
  const format = useFormat();
  const back = cameBack(run);
  if (decision === 'pause') return <>{text.pauseWhat(shared.letters(left))}</>;
  if (decision === 'cancel') return <>{text.cancelWhat(shared.letters(run.progress.sent), shared.letters(left))}</>;
  if (decision === 'reject') return <>{text.rejectWhat}</>;
  if (decision === 'approve') {
    return (
      <>
        <RunWhat run={run} /> <p>{runs.approval.binds}</p>
      </>
    );
  }
  return (
    <>
      {text.resumeWhat(shared.letters(left))} {back > 0 && text.resumeBack(format.number(back))}
    </>
  );
}
