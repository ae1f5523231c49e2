import { NativeSelect, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { serverAddress } from '@/api/page';
import { useAbout } from '@/api/session';
import type { About } from '@/api/types';
import { useLanguage, useText } from '@/locales/language';
import { LANGUAGES, type Language } from '@/locales/messages';
import { DataState } from '@/shared/DataState';
import { useSession } from '@/shared/session';
import { Untrusted } from '@/shared/Untrusted';
import { GrantList } from './GrantList';
import { Permissions } from './Permissions';
import { Roles } from './Roles';
import { Fact, Facts, Section } from './Section';
import classes from './Settings.module.css';

/** Who I am here, what I may do and may not, and how I like the console. */
export function Me() {
  const { settings: text, shell } = useText();
  const me = useSession();
  const about = useAbout();
  return (
    <>
      <div className={classes.pair}>
        <div className={classes.stack}>
          <Section title={shell.me.label}>
            <Facts>
              <Fact label={shell.me.signedInAs}>
                <Untrusted text={me.name} most={200} />
              </Fact>
              <Fact label={shell.me.roles}>{me.grants.length === 0 ? text.roles.none : <GrantList grants={me.grants} />}</Fact>
            </Facts>
          </Section>
          <Appearance />
        </div>
        <Section title={text.server.title}>
          <DataState query={about} lines={4}>
            {(told) => <Server about={told} />}
          </DataState>
        </Section>
      </div>
      <Roles />
      <Permissions />
    </>
  );
}

function Server({ about }: { about: About }) {
  const { server: text } = useText().settings;
  const ways = [about.features.local_users ? text.local : '', about.features.oidc ? text.oidc : ''].filter(Boolean);
  return (
    <Facts>
      <Fact label={text.version}>
        <Untrusted text={about.version} most={60} />
      </Fact>
      <Fact label={text.environment}>
        {about.environment === '' ? <span className="rd-dim">{text.unsaid}</span> : <Untrusted text={about.environment} most={60} />}
        {about.production && about.environment !== text.production && <b className={classes.warn}> ({text.production})</b>}
      </Fact>
      <Fact label={text.changes}>{about.read_only ? text.readOnly : text.writable}</Fact>
      <Fact label={text.signIn}>{ways.join(', ')}</Fact>
      <Fact label={text.address}>
        <Untrusted mono text={serverAddress()} most={300} />
      </Fact>
    </Facts>
  );
}

const SCHEMES: readonly MantineColorScheme[] = ['auto', 'light', 'dark'];

function Appearance() {
  const { language, speak, text } = useLanguage();
  // Without transitions Mantine writes a style tag, which the content security policy does not allow.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const { shell, settings } = text;
  return (
    <Section title={settings.appearance.title} intro={settings.appearance.kept}>
      <div className={classes.fields}>
        <NativeSelect
          label={shell.language}
          value={language}
          onChange={(event) => speak(event.currentTarget.value as Language)}
          data={LANGUAGES.map(({ id, name }) => ({ value: id, label: name }))}
        />
        <NativeSelect
          label={shell.scheme.label}
          value={colorScheme}
          onChange={(event) => setColorScheme(event.currentTarget.value as MantineColorScheme)}
          data={SCHEMES.map((value) => ({ value, label: shell.scheme[value] }))}
        />
      </div>
    </Section>
  );
}
