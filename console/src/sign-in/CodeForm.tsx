import { Button, TextInput } from '@mantine/core';
import { useEffect, useRef, useState, type SyntheticEvent } from 'react';
import { useSignIn } from '@/api/session';
import { useText } from '@/locales/language';
import { Wrong } from './Wrong';
import classes from './SignInPage.module.css';

/** The code of the first start. One that came with a link is used without being asked. */
export function CodeForm({ given }: { given: string }) {
  const { signIn: text } = useText();
  const { mutate, error, isPending } = useSignIn();
  const [code, setCode] = useState(given);
  const used = useRef(false);
  useEffect(() => {
    if (given === '' || used.current) return;
    used.current = true;
    mutate({ code: given });
  }, [given, mutate]);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!isPending) mutate({ code: code.trim() });
  };
  return (
    <form className={classes.form} onSubmit={submit}>
      <TextInput
        label={text.code}
        description={text.codeHelp}
        autoComplete="one-time-code"
        autoCapitalize="off"
        spellCheck={false}
        autoFocus
        required
        withAsterisk={false}
        value={code}
        onChange={(event) => setCode(event.currentTarget.value)}
      />
      <Wrong error={error} what={text.wrongCode} help={text.wrongCodeHelp} />
      <Button type="submit" size="sm" variant="filled" fullWidth loading={isPending}>
        {text.submit}
      </Button>
    </form>
  );
}
