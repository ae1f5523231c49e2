import { useMe, useSessionEnd } from '@/api/session';
import { KeysProvider } from '@/shared/keys';
import { LiveProvider } from '@/shared/live';
import { ProblemNote } from '@/shared/ProblemNote';
import { SessionProvider } from '@/shared/session';
import { SignInPage } from '@/sign-in/SignInPage';
import { ServerAway } from './ServerAway';
import { Shell } from './Shell';

/** Whoever is not signed in signs in first, wherever they wanted to go, and is there then. */
export function Root() {
  useSessionEnd();
  const me = useMe();
  if (me.data === undefined) {
    return me.error === null ? null : (
      <>
        <ServerAway />
        <ProblemNote error={me.error} onRetry={() => void me.refetch()} />
      </>
    );
  }
  if (me.data === null) return <SignInPage />;
  return (
    <SessionProvider me={me.data}>
      <LiveProvider>
        <KeysProvider>
          <Shell />
        </KeysProvider>
      </LiveProvider>
    </SessionProvider>
  );
}
