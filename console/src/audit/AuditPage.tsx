import { Button } from '@mantine/core';
import { IconLock, IconShieldCheck } from '@tabler/icons-react';
import { useRef, useState } from 'react';
import { useLedger } from '@/api/audit';
import { useText } from '@/locales/language';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { useKeys } from '@/shared/keys';
import { useLiveEvery } from '@/shared/live';
import { LoadMore } from '@/shared/LoadMore';
import { PageHeader } from '@/shared/PageHeader';
import { useSession } from '@/shared/session';
import { AuditFilters } from './AuditFilters';
import { AuditTools } from './AuditTools';
import { LedgerTable } from './LedgerTable';
import { useWanted } from './wanted';
import classes from './AuditPage.module.css';

const EVERY = 15_000;
const PAGE = 50;

/** Who did what, to what, and why. */
export function AuditPage() {
  const { audit: text } = useText();
  const me = useSession();
  // A part of the ledger is shown to nobody: its rows are about any queue.
  if (me.permissions['audit:read']?.includes('*') === true) return <Ledger />;
  return (
    <>
      <PageHeader title={text.title} />
      <div className="rd-panel">
        <EmptyState {...text.locked} icon={IconLock} />
      </div>
    </>
  );
}

function Ledger() {
  const { audit: text, shared } = useText();
  const wanted = useWanted();
  const [tools, setTools] = useState(false);
  const query = useLedger(wanted.asked, PAGE, useLiveEvery(EVERY));
  const rows = query.data?.pages.flatMap((page) => page.items) ?? [];
  const box = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: shared.keys.search, run: () => box.current?.focus() }]);
  const empty = wanted.narrowed ? (
    <EmptyState {...text.noMatch} action={<Button onClick={wanted.clear}>{text.filter.clear}</Button>} />
  ) : (
    <EmptyState {...text.none} icon={IconShieldCheck} />
  );
  return (
    <>
      <PageHeader
        title={text.title}
        aside={text.about}
        actions={
          <Button leftSection={<IconShieldCheck size={15} aria-hidden />} onClick={() => setTools(true)}>
            {text.tools.open}
          </Button>
        }
      />
      <AuditFilters wanted={wanted} inputRef={box} />
      <div className={`rd-panel ${classes.panel ?? ''}`} data-old={query.isPlaceholderData || undefined}>
        <DataState query={query} isEmpty={() => rows.length === 0} empty={empty} lines={10}>
          {() => (
            <>
              <LedgerTable rows={rows} />
              <LoadMore query={query} />
            </>
          )}
        </DataState>
      </div>
      <AuditTools opened={tools} onClose={() => setTools(false)} wanted={wanted} />
    </>
  );
}
