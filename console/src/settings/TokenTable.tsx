import { Button } from '@mantine/core';
import { IconBan, IconCheck, IconClockOff } from '@tabler/icons-react';
import type { ApiToken } from '@/api/types';
import { useText } from '@/locales/language';
import { Heads } from '@/shared/Heads';
import { Instant } from '@/shared/Instant';
import { useNow } from '@/shared/now';
import { Permitted } from '@/shared/session';
import table from '@/shared/table.module.css';
import { visible } from '@/shared/untrusted';
import { Untrusted } from '@/shared/Untrusted';
import { GrantList } from './GrantList';
import { stateOf, type TokenState } from './token-state';
import classes from './Settings.module.css';

interface Props {
  tokens: readonly ApiToken[];
  onRevoke: (token: ApiToken) => void;
}

export function TokenTable({ tokens, onRevoke }: Props) {
  const { act, ...columns } = useText().settings.tokens.columns;
  return (
    <table className={table.table}>
      <Heads columns={columns} unseen={act} />
      <tbody>
        {tokens.map((token) => (
          <Row key={token.id} token={token} onRevoke={() => onRevoke(token)} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ token, onRevoke }: { token: ApiToken; onRevoke: () => void }) {
  const { tokens: text } = useText().settings;
  const state = stateOf(token, useNow());
  const { columns } = text;
  return (
    <tr className={state === 'live' ? undefined : classes.ended}>
      <td className={table.main}>
        <span className={table.strong}>
          <Untrusted text={token.name} most={64} />
        </span>
        <span className={classes.under}>
          <Untrusted mono text={token.id} most={64} />
        </span>
      </td>
      <td className={classes.roles}>
        <GrantList grants={token.grants} />
      </td>
      <td data-label={columns.created}>
        <Instant at={token.created_at} />
        <span className={classes.under}>
          <Untrusted text={text.by(token.created_by)} most={100} />
        </span>
      </td>
      <td data-label={columns.used}>{token.last_used_at === null ? <span className="rd-dim">{text.never}</span> : <Instant at={token.last_used_at} />}</td>
      <td data-label={columns.expires}>
        <Instant at={token.expires_at} />
      </td>
      <td>
        <State state={state} by={token.revoked_by} />
      </td>
      <td className={classes.act}>
        {state === 'live' && (
          <Permitted to="access:manage">
            {(disabled) => (
              <Button disabled={disabled} aria-label={text.revokeOf(visible(token.name))} onClick={onRevoke}>
                {text.revoke}
              </Button>
            )}
          </Permitted>
        )}
      </td>
    </tr>
  );
}

const SHAPES = { live: IconCheck, expired: IconClockOff, revoked: IconBan };

function State({ state, by }: { state: TokenState; by: string }) {
  const { tokens: text } = useText().settings;
  const Shape = SHAPES[state];
  return (
    <span className={classes.state} data-live={state === 'live' || undefined} title={by === '' ? undefined : text.revokedBy(visible(by))}>
      <Shape size={14} aria-hidden />
      {text.states[state]}
    </span>
  );
}
