import { useState } from 'react';
import { useLocation } from 'react-router';
import { signInWays } from '@/api/page';
import { useText } from '@/locales/language';
import { Brand } from '@/routes/Brand';
import { ServerAway } from '@/routes/ServerAway';
import { LanguageMenu, SchemeMenu } from '@/routes/TopBar';
import { CodeForm } from './CodeForm';
import { ProviderButton } from './ProviderButton';
import { UserForm } from './UserForm';
import classes from './SignInPage.module.css';

/** A link such as `/sign-in#code=…` signs in by itself: the code is taken out of the address at once. */
function useCodeOfLink(): string {
  const { hash } = useLocation();
  const [code] = useState(() => new URLSearchParams(hash.slice(1)).get('code') ?? '');
  if (code !== '' && window.location.hash.includes('code=')) {
    window.history.replaceState(window.history.state, '', window.location.pathname);
  }
  return code;
}

export function SignInPage() {
  const { signIn } = useText();
  const code = useCodeOfLink();
  const [first, setFirst] = useState(code !== '');
  return (
    <div className={classes.page}>
      <ServerAway />
      <div className={classes.corner}>
        <LanguageMenu />
        <SchemeMenu />
      </div>
      <main className={classes.card}>
        <Brand />
        <h1 className={classes.title}>{signIn.title}</h1>
        {signInWays.has('oidc') && !first && (
          <>
            <ProviderButton />
            <div className={classes.or}>{signIn.or}</div>
          </>
        )}
        {first ? <CodeForm given={code} /> : <UserForm />}
        <button type="button" className={classes.other} onClick={() => setFirst(!first)}>
          {first ? signIn.back : signIn.first}
        </button>
      </main>
    </div>
  );
}
