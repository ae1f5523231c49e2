import { Button, TextInput } from '@mantine/core';
import { useState, type SyntheticEvent } from 'react';
import { useSignIn } from '@/api/session';
import { useText } from '@/locales/language';
import { PasswordField } from '@/shared/PasswordField';
import { Wrong } from './Wrong';
import classes from './SignInPage.module.css';

export function UserForm() {
  const { signIn: text } = useText();
  const signIn = useSignIn();
  const [user, setUser] = useState('');
  const [password, setPassword] = useState('');
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!signIn.isPending) signIn.mutate({ user, password });
  };
  return (
    <form className={classes.form} onSubmit={submit}>
      <TextInput
        label={text.user}
        name="username"
        autoComplete="username"
        autoCapitalize="off"
        autoFocus
        required
        withAsterisk={false}
        value={user}
        onChange={(event) => setUser(event.currentTarget.value)}
      />
      <PasswordField
        label={text.password}
        name="password"
        autoComplete="current-password"
        required
        withAsterisk={false}
        value={password}
        onChange={(event) => setPassword(event.currentTarget.value)}
      />
      <Wrong error={signIn.error} what={text.wrong} help={text.wrongHelp} />
      <Button type="submit" size="sm" variant="filled" fullWidth loading={signIn.isPending}>
        {text.submit}
      </Button>
    </form>
  );
}
