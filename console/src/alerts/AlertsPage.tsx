import { IconBell } from '@tabler/icons-react';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { useAlerts } from '@/api/alerts';
import type { Alert } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { Count } from '@/shared/Count';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { useKeys } from '@/shared/keys';
import { useLiveEvery } from '@/shared/live';
import { PageHeader } from '@/shared/PageHeader';
import { Section } from '@/shared/Section';
import { useCursor } from '@/shared/useCursor';
import { AlertDialog, type Asked } from './AlertDialog';
import { AlertTable } from './AlertTable';
import { EVERY, firingOf, overOf, pageOf } from './alerts';
import classes from './alerts.module.css';

const LIMIT = 200;

/** What rules found: what is so now, and below it what was. */
export function AlertsPage() {
  const { alerts: text } = useText();
  const query = useAlerts({ firing: false, limit: LIMIT }, useLiveEvery(EVERY));
  return (
    <>
      <PageHeader title={text.title} />
      <DataState query={query}>{({ items }) => <Found alerts={items} />}</DataState>
    </>
  );
}

function Found({ alerts }: { alerts: readonly Alert[] }) {
  const { alerts: text, shared } = useText();
  const format = useFormat();
  const navigate = useNavigate();
  const [asked, setAsked] = useState<Asked | null>(null);
  const firing = firingOf(alerts);
  const over = overOf(alerts);
  const cursor = useCursor(alerts.length);
  const open = () => {
    const picked = [...firing, ...over][cursor.at];
    if (picked !== undefined) void navigate(pageOf(picked));
  };
  useKeys([
    { key: 'j', label: shared.keys.next, run: cursor.next },
    { key: 'k', label: shared.keys.previous, run: cursor.previous },
    { key: 'Enter', label: shared.keys.open, run: open },
  ]);
  const ask = (alert: Alert, deed: Asked['deed']) => setAsked({ alert, deed });
  return (
    <div className={classes.page}>
      <Section flush title={text.firing} aside={firing.length > 0 && <Count of={firing.length} />}>
        {firing.length === 0 ? (
          <EmptyState {...text.none} icon={IconBell} />
        ) : (
          <AlertTable alerts={firing} at={cursor.at} onAsk={ask} />
        )}
      </Section>
      {over.length > 0 && (
        <Section flush title={text.over} aside={text.overKept}>
          <AlertTable over alerts={over} at={cursor.at - firing.length} onAsk={ask} />
        </Section>
      )}
      {alerts.length >= LIMIT && <p className={classes.cut}>{text.cut(format.number(LIMIT))}</p>}
      <AlertDialog asked={asked} onClose={() => setAsked(null)} />
    </div>
  );
}
