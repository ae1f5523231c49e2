import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { useAddUser } from '@/api/accounts';
import { useText } from '@/locales/language';
import { PasswordField } from '@/shared/PasswordField';
import { useToasts } from '@/shared/toasts';
import { visible } from '@/shared/untrusted';
import { useFocusBack } from '@/shared/useFocusBack';
import { FormDialog } from './Form';
import { GrantEditor } from './GrantEditor';
import { grantOf, type Draft } from './grants';
import { SHORTEST_PASSWORD } from './UserDialogs';

export function NewUser({ onClose }: { onClose: () => void }) {
  const { settings, shared } = useText();
  const { users: text } = settings;
  const toast = useToasts();
  const add = useAddUser();
  useFocusBack();
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [drafts, setDrafts] = useState<Draft[]>([{ role: 'viewer', queues: '' }]);
  const [reason, setReason] = useState('');
  const submit = async () => {
    const made = await add.mutateAsync({ name: name.trim(), password, grants: drafts.map(grantOf), reason: reason.trim() });
    add.reset();
    toast.done(text.added(visible(made.name)));
    onClose();
  };
  return (
    <FormDialog
      title={text.form.title}
      onClose={onClose}
      submit={text.form.add}
      ready={name.trim() !== '' && password.length >= SHORTEST_PASSWORD}
      onSubmit={submit}
    >
      <TextInput
        label={text.form.name}
        description={text.form.nameHelp}
        value={name}
        maxLength={64}
        required
        autoComplete="off"
        data-autofocus
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <PasswordField
        label={text.passwordLabel}
        description={text.passwordHelp}
        value={password}
        autoComplete="new-password"
        required
        onChange={(event) => setPassword(event.currentTarget.value)}
      />
      <GrantEditor drafts={drafts} onChange={setDrafts} />
      <TextInput label={shared.confirm.reason} description={shared.confirm.reasonHelp} value={reason} maxLength={1000} onChange={(event) => setReason(event.currentTarget.value)} />
    </FormDialog>
  );
}
