import { Button } from '@mantine/core';
import { IconMoodSad } from '@tabler/icons-react';
import { useRouteError } from 'react-router';
import { useText } from '@/locales/language';
import { EmptyState } from '@/shared/EmptyState';
import { Untrusted } from '@/shared/Untrusted';

/** A fault in a page leaves the others alone. A new version on the server is the usual reason: loading anew helps. */
export function PageFailed() {
  const { shell } = useText();
  const error = useRouteError();
  const told = error instanceof Error ? error.message : String(error);
  return (
    <div role="alert">
      <EmptyState
        icon={IconMoodSad}
        title={shell.broken.title}
        what={
          <>
            {shell.broken.what}
            <br />
            <Untrusted mono text={told} most={300} />
          </>
        }
        action={<Button onClick={() => window.location.reload()}>{shell.broken.reload}</Button>}
      />
    </div>
  );
}
