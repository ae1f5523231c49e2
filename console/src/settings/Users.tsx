import { Button } from '@mantine/core';
import { IconLock, IconUserPlus, IconUsers } from '@tabler/icons-react';
import { useState } from 'react';
import { useUsers } from '@/api/accounts';
import type { User } from '@/api/types';
import { useText } from '@/locales/language';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { Permitted, useCan } from '@/shared/session';
import { NewUser } from './NewUser';
import { Section } from './Section';
import { GrantsDialog, PasswordDialog, SwitchDialog } from './UserDialogs';
import { UserTable, type Wish } from './UserTable';

export function Users() {
  const { settings } = useText();
  const { users: text } = settings;
  const may = useCan()('access:manage');
  const query = useUsers(may);
  const [adding, setAdding] = useState(false);
  const [wish, setWish] = useState<{ what: Wish; user: User; opener: HTMLElement | null } | null>(null);
  const done = () => setWish(null);
  const add = (
    <Permitted to="access:manage">
      {(disabled) => (
        <Button variant="filled" disabled={disabled} leftSection={<IconUserPlus size={15} aria-hidden />} onClick={() => setAdding(true)}>
          {text.add}
        </Button>
      )}
    </Permitted>
  );
  return (
    <Section title={settings.tabs.users} intro={text.intro} actions={add} flush>
      {may ? (
        <DataState query={query} isEmpty={({ items }) => items.length === 0} empty={<EmptyState {...text.empty} icon={IconUsers} />}>
          {({ items }) => <UserTable users={items} onWish={(what, user, opener) => setWish({ what, user, opener })} />}
        </DataState>
      ) : (
        <EmptyState {...settings.locked('access:manage')} icon={IconLock} />
      )}
      {adding && <NewUser onClose={() => setAdding(false)} />}
      {wish?.what === 'grants' && <GrantsDialog {...wish} onClose={done} />}
      {wish?.what === 'password' && <PasswordDialog {...wish} onClose={done} />}
      {wish?.what === 'switch' && <SwitchDialog {...wish} onClose={done} />}
    </Section>
  );
}
