import { Tabs } from '@mantine/core';
import { IconAdjustments, IconKey, IconUserCircle, IconUsers } from '@tabler/icons-react';
import { useText } from '@/locales/language';
import { useAddress } from '@/shared/address';
import { PageHeader } from '@/shared/PageHeader';
import { Loaded } from './Loaded';
import { Me } from './Me';
import { Tokens } from './Tokens';
import { Users } from './Users';
import classes from './Settings.module.css';

const TABS = { me: [IconUserCircle, Me], tokens: [IconKey, Tokens], users: [IconUsers, Users], loaded: [IconAdjustments, Loaded] } as const;
type Tab = keyof typeof TABS;

const isTab = (text: string): text is Tab => Object.hasOwn(TABS, text);

/** Who one is here, who else may come in, and what the server works by. */
export function SettingsPage() {
  const { settings: text } = useText();
  const { get, set } = useAddress();
  const asked = get('tab');
  const tab = isTab(asked) ? asked : 'me';
  const Content = TABS[tab][1];
  return (
    <>
      <PageHeader title={text.title} />
      <Tabs value={tab} onChange={(next) => set({ tab: next === 'me' ? null : next })} keepMounted={false}>
        <Tabs.List className={classes.tabs ?? ''} aria-label={text.title}>
          {(Object.keys(TABS) as Tab[]).map((each) => {
            const Shape = TABS[each][0];
            return (
              <Tabs.Tab key={each} value={each} leftSection={<Shape size={16} stroke={1.7} aria-hidden />}>
                {text.tabs[each]}
              </Tabs.Tab>
            );
          })}
        </Tabs.List>
        {(Object.keys(TABS) as Tab[]).map((each) => (
          <Tabs.Panel key={each} value={each}>
            {each === tab && (
              <div className={classes.content}>
                <Content />
              </div>
            )}
          </Tabs.Panel>
        ))}
      </Tabs>
    </>
  );
}
