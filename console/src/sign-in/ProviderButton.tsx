import { Button } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useLocation } from 'react-router';
import { providerUrl } from '@/api/session';
import { useText } from '@/locales/language';

/** The browser itself goes to the identity provider, and comes back to this page. */
export function ProviderButton() {
  const { signIn } = useText();
  const { pathname } = useLocation();
  const back = pathname === '/sign-in' ? '/' : pathname;
  return (
    <Button component="a" href={providerUrl(back)} size="sm" variant="filled" fullWidth leftSection={<IconKey size={16} aria-hidden />}>
      {signIn.provider}
    </Button>
  );
}
