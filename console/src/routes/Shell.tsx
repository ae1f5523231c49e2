import { Drawer } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useEffect } from 'react';
import { Outlet, useLocation, useNavigate } from 'react-router';
import { useText } from '@/locales/language';
import { useKeys } from '@/shared/keys';
import { Navigation, useDestinations } from './Navigation';
import { ServerAway } from './ServerAway';
import { TopBar } from './TopBar';
import classes from './Shell.module.css';

/** Navigation on the left, or in a drawer where there is no room; the top bar; the page. */
export function Shell() {
  const { shell, shared } = useText();
  const [opened, drawer] = useDisclosure(false);
  const { pathname } = useLocation();
  const navigate = useNavigate();
  const destinations = useDestinations();
  const { close } = drawer;
  useEffect(close, [pathname, close]);
  useKeys(
    destinations.map(({ key, label, to }) => ({
      key: `g ${key}`,
      label: `${shared.keys.go}: ${label}`,
      run: () => void navigate(to),
    })),
    'everywhere',
  );
  return (
    <div className={classes.shell}>
      <a href="#content" className={classes.skip} onClick={(event) => { event.preventDefault(); document.getElementById('content')?.focus(); }}>
        {shell.skip}
      </a>
      <div className={classes.side}>
        <Navigation />
      </div>
      <Drawer.Root opened={opened} onClose={close} size={240} padding={0}>
        <Drawer.Overlay />
        <Drawer.Content aria-label={shell.navigation}>
          <Navigation />
        </Drawer.Content>
      </Drawer.Root>
      <div className={classes.main}>
        <ServerAway />
        <TopBar onMenu={drawer.open} />
        <main id="content" tabIndex={-1} className={classes.content}>
          <Outlet />
        </main>
      </div>
    </div>
  );
}
