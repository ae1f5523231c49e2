import { Button, Menu } from '@mantine/core';
import { IconBan, IconCheck, IconChevronDown } from '@tabler/icons-react';
import { useRef } from 'react';
import type { User } from '@/api/types';
import { useText } from '@/locales/language';
import { Heads } from '@/shared/Heads';
import { Instant } from '@/shared/Instant';
import { Permitted, useSession } from '@/shared/session';
import table from '@/shared/table.module.css';
import { visible } from '@/shared/untrusted';
import { Untrusted } from '@/shared/Untrusted';
import { GrantList } from './GrantList';
import classes from './Settings.module.css';

export type Wish = 'grants' | 'password' | 'switch';

interface Props {
  users: readonly User[];
  /** Told what opened the menu, so that the focus can go back there. */
  onWish: (wish: Wish, user: User, opener: HTMLElement | null) => void;
}

export function UserTable({ users, onWish }: Props) {
  const { act, ...columns } = useText().settings.users.columns;
  return (
    <table className={table.table}>
      <Heads columns={columns} unseen={act} />
      <tbody>
        {users.map((user) => (
          <Row key={user.name} user={user} onWish={(wish, opener) => onWish(wish, user, opener)} />
        ))}
      </tbody>
    </table>
  );
}

type Wished = (wish: Wish, opener: HTMLElement | null) => void;

function Row({ user, onWish }: { user: User; onWish: Wished }) {
  const { settings } = useText();
  const { users: text } = settings;
  const me = useSession();
  const Shape = user.disabled ? IconBan : IconCheck;
  return (
    <tr className={user.disabled ? classes.ended : undefined}>
      <td className={classes.called}>
        <span className={table.strong}>
          <Untrusted text={user.name} most={64} />
        </span>
        {user.name === me.name && <span className="rd-dim"> ({text.you})</span>}
      </td>
      <td className={table.main}>
        <GrantList grants={user.grants} />
      </td>
      <td data-label={text.columns.created}>
        <Instant at={user.created_at} />
        <span className={classes.under}>
          <Untrusted text={settings.tokens.by(user.created_by)} most={100} />
        </span>
      </td>
      <td>
        <span className={classes.state} data-live={!user.disabled || undefined}>
          <Shape size={14} aria-hidden />
          {user.disabled ? text.states.disabled : text.states.enabled}
        </span>
      </td>
      <td className={classes.act}>
        <Permitted to="access:manage">{(disabled) => <Actions user={user} disabled={disabled} onWish={onWish} />}</Permitted>
      </td>
    </tr>
  );
}

function Actions({ user, disabled, onWish }: { user: User; disabled: boolean; onWish: Wished }) {
  const { users: text } = useText().settings;
  const opener = useRef<HTMLButtonElement>(null);
  const wish = (what: Wish) => onWish(what, opener.current);
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          ref={opener}
          disabled={disabled}
          aria-label={text.changeOf(visible(user.name))}
          rightSection={<IconChevronDown size={13} aria-hidden />}
        >
          {text.change}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => wish('grants')}>{text.grants}</Menu.Item>
        <Menu.Item onClick={() => wish('password')}>{text.password}</Menu.Item>
        <Menu.Divider />
        <Menu.Item onClick={() => wish('switch')} {...(user.disabled ? {} : { color: 'red' })}>
          {user.disabled ? text.enable : text.disable}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
