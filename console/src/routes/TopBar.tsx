import { ActionIcon, Badge, Button, Menu, Tooltip, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { IconDeviceDesktop, IconLanguage, IconLogout, IconMenu2, IconMoon, IconSun, IconUserCircle } from '@tabler/icons-react';
import { useAbout, useSignOut } from '@/api/session';
import { useLanguage, useText } from '@/locales/language';
import { LANGUAGES } from '@/locales/messages';
import { useLive } from '@/shared/live';
import { useSession } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { visible } from '@/shared/untrusted';
import { Untrusted } from '@/shared/Untrusted';
import classes from './TopBar.module.css';

export function TopBar({ onMenu }: { onMenu: () => void }) {
  const { shell } = useText();
  return (
    <header className={classes.bar}>
      <ActionIcon className={classes.menu ?? ''} size="lg" aria-label={shell.menu} onClick={onMenu}>
        <IconMenu2 size={19} aria-hidden />
      </ActionIcon>
      <Environment />
      <div className={classes.rest}>
        <LiveSwitch />
        <LanguageMenu />
        <SchemeMenu />
        <AccountMenu />
      </div>
    </header>
  );
}

/** Production is marked, so that nobody takes it for something else. */
function Environment() {
  const { shell } = useText();
  const { data } = useAbout();
  return (
    <div className={classes.environment}>
      {data !== undefined && data.environment !== '' && (
        <span className={classes.place} data-production={data.production || undefined}>
          <Untrusted text={data.environment} most={40} />
        </span>
      )}
      {data?.read_only === true && (
        <Tooltip label={shell.readOnlyWhy}>
          <Badge variant="light" color="gray" radius="sm" tt="none">
            {shell.readOnly}
          </Badge>
        </Tooltip>
      )}
    </div>
  );
}

function LiveSwitch() {
  const { shell } = useText();
  const { live, toggle } = useLive();
  return (
    <Tooltip label={live ? shell.live.pause : shell.live.resume}>
      <Button variant="subtle" color="gray" aria-pressed={live} onClick={toggle} className={classes.live ?? ''}>
        <span className={classes.dot} data-live={live || undefined} />
        <span className={classes.word}>{live ? shell.live.on : shell.live.off}</span>
      </Button>
    </Tooltip>
  );
}

export function LanguageMenu() {
  const { language, speak, text } = useLanguage();
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon size="lg" aria-label={text.shell.language}>
          <IconLanguage size={18} stroke={1.7} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {LANGUAGES.map(({ id, name }) => (
          <Menu.Item key={id} lang={id} onClick={() => speak(id)} aria-current={id === language} fw={id === language ? 600 : 400}>
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

const SCHEMES = { light: IconSun, dark: IconMoon, auto: IconDeviceDesktop };

export function SchemeMenu() {
  const { shell } = useText();
  // Without transitions Mantine writes a style tag, which the content security policy does not allow.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const Shape = SCHEMES[colorScheme];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon size="lg" aria-label={shell.scheme.label}>
          <Shape size={18} stroke={1.7} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {(Object.keys(SCHEMES) as MantineColorScheme[]).map((each) => {
          const Own = SCHEMES[each];
          return (
            <Menu.Item key={each} leftSection={<Own size={15} aria-hidden />} fw={each === colorScheme ? 600 : 400} onClick={() => setColorScheme(each)}>
              {shell.scheme[each]}
            </Menu.Item>
          );
        })}
      </Menu.Dropdown>
    </Menu>
  );
}

function AccountMenu() {
  const { shell } = useText();
  const me = useSession();
  const signOut = useSignOut();
  const toast = useToasts();
  const roles = me.grants.map(({ role, queues }) => (queues.includes('*') ? role : `${role}: ${queues.join(', ')}`));
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <Button variant="subtle" color="gray" leftSection={<IconUserCircle size={18} stroke={1.7} aria-hidden />} aria-label={`${shell.me.label}: ${visible(me.name)}`}>
          <span className={classes.word}>
            <Untrusted text={me.name} most={24} />
          </span>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <div className={classes.me}>
          <span className="rd-dim">{shell.me.signedInAs}</span> <Untrusted text={me.name} most={100} />
          <br />
          <span className="rd-dim">{shell.me.roles}:</span> <Untrusted text={roles.join('; ') || shell.me.noRoles} most={300} />
        </div>
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={15} aria-hidden />} onClick={() => signOut.mutate(undefined, { onError: toast.problem })}>
          {shell.me.signOut}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
