import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { useChangeUser } from '@/api/accounts';
import type { User, UserChange } from '@/api/types';
import { useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { PasswordField } from '@/shared/PasswordField';
import { useSession } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { visible } from '@/shared/untrusted';
import { useFocusBack } from '@/shared/useFocusBack';
import { FormDialog } from './Form';
import { GrantEditor } from './GrantEditor';
import { draftOf, grantOf } from './grants';
import classes from './Settings.module.css';

interface Props {
  user: User;
  /** Where the focus goes when the dialog is gone. */
  opener: HTMLElement | null;
  onClose: () => void;
}

export const SHORTEST_PASSWORD = 12;

/** Changes the user, says so, and closes; what fails is thrown. */
function useChange({ user, opener, onClose }: Props) {
  const { users: text } = useText().settings;
  const toast = useToasts();
  const save = useChangeUser();
  useFocusBack(opener);
  return async (change: UserChange) => {
    await save.mutateAsync({ name: user.name, change });
    save.reset();
    toast.done(text.changed(visible(user.name)));
    onClose();
  };
}

/** The history keeps it. */
function Why({ value, onChange }: { value: string; onChange: (reason: string) => void }) {
  const { shared } = useText();
  return (
    <TextInput
      label={shared.confirm.reason}
      description={shared.confirm.reasonHelp}
      value={value}
      maxLength={1000}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

export function GrantsDialog(props: Props) {
  const { users: text } = useText().settings;
  const me = useSession();
  const change = useChange(props);
  const [drafts, setDrafts] = useState(() => props.user.grants.map(draftOf));
  const [reason, setReason] = useState('');
  return (
    <FormDialog
      title={text.grantsTitle(visible(props.user.name))}
      onClose={props.onClose}
      submit={text.grantsConfirm}
      ready={drafts.length > 0}
      onSubmit={() => change({ grants: drafts.map(grantOf), reason: reason.trim() })}
    >
      <p>{text.grantsWhat}</p>
      {props.user.name === me.name && <p className={classes.warn}>{text.ownGrants}</p>}
      <GrantEditor drafts={drafts} onChange={setDrafts} />
      <Why value={reason} onChange={setReason} />
    </FormDialog>
  );
}

export function PasswordDialog(props: Props) {
  const { users: text } = useText().settings;
  const change = useChange(props);
  const [password, setPassword] = useState('');
  const [reason, setReason] = useState('');
  return (
    <FormDialog
      title={text.passwordTitle(visible(props.user.name))}
      onClose={props.onClose}
      submit={text.passwordConfirm}
      ready={password.length >= SHORTEST_PASSWORD}
      onSubmit={() => change({ password, reason: reason.trim() })}
    >
      <p>{text.passwordWhat}</p>
      <PasswordField
        label={text.passwordLabel}
        description={text.passwordHelp}
        value={password}
        autoComplete="new-password"
        required
        data-autofocus
        onChange={(event) => setPassword(event.currentTarget.value)}
      />
      <Why value={reason} onChange={setReason} />
    </FormDialog>
  );
}

/** Disables or enables. */
export function SwitchDialog(props: Props) {
  const { users: text } = useText().settings;
  const me = useSession();
  const change = useChange(props);
  const { name, disabled } = props.user;
  const title = disabled ? text.enableTitle : text.disableTitle;
  return (
    <ConfirmDialog
      opened
      onClose={props.onClose}
      title={title(visible(name))}
      confirm={disabled ? text.enableConfirm : text.disableConfirm}
      danger={!disabled}
      reason="optional"
      onConfirm={(reason) => change({ disabled: !disabled, reason })}
    >
      {disabled ? text.enableWhat : text.disableWhat}
      {name === me.name && !disabled && <p className={classes.warn}>{text.ownGrants}</p>}
    </ConfirmDialog>
  );
}
