import { Button, Checkbox, TextInput } from '@mantine/core';
import { IconEyeCheck } from '@tabler/icons-react';
import { useState } from 'react';
import type { PreviewJson, RunJson } from '@/api/types';
import { useText } from '@/locales/language';
import { Instant } from '@/shared/Instant';
import { ProblemNote } from '@/shared/ProblemNote';
import { Permitted } from '@/shared/session';
import { Untrusted } from '@/shared/Untrusted';
import classes from './dialogs.module.css';

interface Props {
  /** The exact number; undefined: it is being counted. */
  count: number | undefined;
  approval: RunJson['approval'];
  /** Whether number and checks answer to what is chosen now. */
  current: boolean;
  preview: PreviewJson | undefined;
  edits: boolean;
  error: unknown;
  /** The preview has failed, and says so itself. */
  failed: boolean;
  busy: boolean;
  onClose: () => void;
  onSubmit: (reason: string) => void;
}

/** Why, and the button that says exactly what will happen. */
export function RedriveFooter({ count, approval, current, preview, edits, error, failed, busy, onClose, onSubmit }: Props) {
  const { runs, shared } = useText();
  const text = runs.redrive;
  const [reason, setReason] = useState('');
  const [asked, setAsked] = useState(false);
  const [passOver, setPassOver] = useState(false);
  const stopped = preview?.worst === 'stop';
  const misfits = edits && (preview?.samples.some((each) => each.refused !== '' || each.misfits.length > 0) ?? false);
  const ready = current && count !== undefined && count > 0 && !stopped && (!misfits || passOver);
  const missing = asked && reason.trim() === '';
  const submit = () => {
    setAsked(true);
    if (ready && !busy && reason.trim() !== '') onSubmit(reason.trim());
  };
  return (
    <form
      noValidate
      className={classes.footer}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {error !== null && <ProblemNote error={error} />}
      {approval !== null && <ApprovalNeeded approval={approval} />}
      {misfits && <Checkbox size="xs" label={text.edit.passOver} checked={passOver} onChange={(event) => setPassOver(event.currentTarget.checked)} />}
      <div className={classes.decide}>
        <TextInput
          className={classes.reason}
          label={text.reason}
          description={text.reasonHelp}
          value={reason}
          maxLength={1000}
          required
          autoFocus
          error={missing ? text.reasonMissing : undefined}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <div className={classes.buttons}>
          <Button size="sm" onClick={onClose}>
            {shared.cancel}
          </Button>
          <Permitted to="runs:make">
            {(refused) => (
              <Button size="sm" type="submit" variant="filled" disabled={refused || !ready} loading={busy} title={stopped ? text.stopped : undefined}>
                {(error !== null || failed) && count === undefined ? text.title : words(text, count, current, approval !== null)}
              </Button>
            )}
          </Permitted>
        </div>
      </div>
    </form>
  );
}

type Text = ReturnType<typeof useText>['runs']['redrive'];

function words(text: Text, count: number | undefined, current: boolean, approval: boolean): string {
  if (count === 0) return text.nothing;
  if (count === undefined || !current) return text.counting;
  return approval ? text.ask(count) : text.button(count);
}

function ApprovalNeeded({ approval }: { approval: NonNullable<Props['approval']> }) {
  const { runs } = useText();
  const text = runs.redrive.approval;
  return (
    <div className={classes.approval} role="note">
      <IconEyeCheck size={18} stroke={1.8} aria-hidden />
      <div>
        <strong>{text.title}</strong>
        <p>
          {text.why} <Untrusted text={approval.why} most={400} />. {text.who} {text.expires} <Instant at={approval.expires_at} />.
        </p>
      </div>
    </div>
  );
}
