import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { useAlert } from '@/api/alerts';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { useLiveEvery } from '@/shared/live';
import { PageHeader } from '@/shared/PageHeader';
import { AlertDialog, type Asked } from './AlertDialog';
import { EVERY, isFiring } from './alerts';
import { AlertTable } from './AlertTable';

/** One alert: where the audit trail leads. */
export function AlertPage() {
  const { alerts: text } = useText();
  const { id = '' } = useParams();
  const query = useAlert(id, useLiveEvery(EVERY));
  const [asked, setAsked] = useState<Asked | null>(null);
  return (
    <>
      <PageHeader title={text.one} above={<Link to={paths.alerts}>{text.all}</Link>} />
      <DataState query={query} lines={2}>
        {(alert) => (
          <div className="rd-panel">
            <AlertTable over={!isFiring(alert)} alerts={[alert]} onAsk={(about, deed) => setAsked({ alert: about, deed })} />
          </div>
        )}
      </DataState>
      <AlertDialog asked={asked} onClose={() => setAsked(null)} />
    </>
  );
}
