import { Button } from '@mantine/core';
import { IconKey, IconLock } from '@tabler/icons-react';
import { useState } from 'react';
import { useRevokeToken, useTokens } from '@/api/accounts';
import type { ApiToken } from '@/api/types';
import { useText } from '@/locales/language';
import { ConfirmDialog } from '@/shared/ConfirmDialog';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { useNow } from '@/shared/now';
import { Permitted, useCan } from '@/shared/session';
import { useToasts } from '@/shared/toasts';
import { visible } from '@/shared/untrusted';
import { NewToken } from './NewToken';
import { Section } from './Section';
import { stateOf } from './token-state';
import { TokenTable } from './TokenTable';
import classes from './Settings.module.css';

export function Tokens() {
  const { settings } = useText();
  const { tokens: text } = settings;
  const may = useCan()('access:manage');
  const query = useTokens(may);
  const [making, setMaking] = useState(false);
  const [ending, setEnding] = useState<ApiToken | null>(null);
  const make = (
    <Permitted to="access:manage">
      {(disabled) => (
        <Button variant="filled" disabled={disabled} leftSection={<IconKey size={15} aria-hidden />} onClick={() => setMaking(true)}>
          {text.make}
        </Button>
      )}
    </Permitted>
  );
  return (
    <Section title={settings.tabs.tokens} intro={text.intro} actions={make} flush>
      {may ? (
        <DataState query={query} isEmpty={({ items }) => items.length === 0} empty={<EmptyState {...text.empty} icon={IconKey} />}>
          {({ items }) => <TokenList tokens={items} onRevoke={setEnding} />}
        </DataState>
      ) : (
        <EmptyState {...settings.locked('access:manage')} icon={IconLock} />
      )}
      {making && <NewToken onClose={() => setMaking(false)} />}
      <Revoking token={ending} onClose={() => setEnding(null)} />
    </Section>
  );
}

/** Those that hold; those that have ended when somebody asks for them. */
function TokenList({ tokens, onRevoke }: { tokens: readonly ApiToken[]; onRevoke: (token: ApiToken) => void }) {
  const { tokens: text } = useText().settings;
  const [all, setAll] = useState(false);
  const now = useNow();
  const live = tokens.filter((each) => stateOf(each, now) === 'live');
  const ended = tokens.filter((each) => !live.includes(each));
  return (
    <>
      {live.length === 0 && <p className={`${classes.note ?? ''} rd-dim`}>{text.allEnded}</p>}
      {(live.length > 0 || all) && <TokenTable tokens={all ? [...live, ...ended] : live} onRevoke={onRevoke} />}
      {ended.length > 0 && !all && (
        <div className={classes.note}>
          <Button variant="subtle" onClick={() => setAll(true)}>
            {text.showEnded(ended.length)}
          </Button>
        </div>
      )}
    </>
  );
}

function Revoking({ token, onClose }: { token: ApiToken | null; onClose: () => void }) {
  const { tokens: text } = useText().settings;
  const toast = useToasts();
  const revoke = useRevokeToken();
  const name = visible(token?.name ?? '');
  return (
    <ConfirmDialog
      opened={token !== null}
      onClose={onClose}
      title={text.revokeTitle(name)}
      confirm={text.revokeConfirm}
      danger
      reason="optional"
      onConfirm={async (reason) => {
        if (token === null) return;
        await revoke.mutateAsync({ id: token.id, reason });
        toast.done(text.revoked(name));
      }}
    >
      {text.revokeWhat}
    </ConfirmDialog>
  );
}
