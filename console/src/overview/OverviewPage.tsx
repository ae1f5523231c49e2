import { Link, useNavigate } from 'react-router';
import { useArrivals, useSeenGroups, useSituation } from '@/api/insights';
import { useQueues } from '@/api/queues';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { Instant } from '@/shared/Instant';
import { useKeys } from '@/shared/keys';
import { useLive, useLiveEvery } from '@/shared/live';
import { useNow } from '@/shared/now';
import { PageHeader } from '@/shared/PageHeader';
import { ProblemNote } from '@/shared/ProblemNote';
import { Section } from '@/shared/Section';
import { Untrusted } from '@/shared/Untrusted';
import { useCursor } from '@/shared/useCursor';
import { ArrivalsChart } from './ArrivalsChart';
import { calm } from './calm';
import { Figures } from './Figures';
import { Firing } from './Firing';
import { FirstSteps } from './FirstSteps';
import { byNeed, QueueHealth } from './QueueHealth';
import { SeenGroups } from './SeenGroups';
import { shownOf } from './shown';
import { useTimes } from './span';
import classes from './OverviewPage.module.css';

const EVERY = 10_000;
const STACKED = 6;
const GROUPS = 200;
const QUEUES = 8;

/** What broke, and since when. Five questions are asked at once, and each part is shown as soon as it is answered. */
export function OverviewPage() {
  const { overview: text } = useText();
  const every = useLiveEvery(EVERY);
  const times = useTimes();
  const situation = useSituation(times.span, every);
  const arrivals = useArrivals(times.whole, STACKED, every);
  const when = times.range === null ? text.span.long[times.window] : text.span.inRange;
  const total = Object.values(situation.data?.by_status ?? { unknown: 1 }).reduce((sum, each) => sum + each, 0);
  return (
    <>
      <PageHeader title={text.title} aside={<Updated at={situation.dataUpdatedAt} />} />
      <div className={classes.page}>
        {calm(situation).error !== null && <ProblemNote error={situation.error} onRetry={() => void situation.refetch()} />}
        <Firing every={every} />
        {total === 0 ? (
          <FirstSteps />
        ) : (
          <>
            <Figures situation={situation.data} when={when} />
            <ArrivalsChart query={calm(arrivals)} window={times.window} onWindow={times.setWindow} range={times.range} onRange={times.setRange} />
            <Broken when={when} />
          </>
        )}
        <Queues quiet={total === 0} />
      </div>
    </>
  );
}

/** Whether the numbers are of now. */
function Updated({ at }: { at: number }) {
  const { overview } = useText();
  const { live } = useLive();
  const now = useNow();
  if (at === 0) return null;
  return (
    <span className={classes.updated}>
      {live ? overview.updated : overview.paused} <Instant at={new Date(Math.min(at, now - 1)).toISOString()} brief />
    </span>
  );
}

function Broken({ when }: { when: string }) {
  const { overview, shared } = useText();
  const { broken: text } = overview;
  const navigate = useNavigate();
  const { span } = useTimes();
  const query = useSeenGroups(span, GROUPS, useLiveEvery(EVERY));
  const items = shownOf(query.data?.items ?? []);
  const cursor = useCursor(items.length);
  const open = () => {
    const picked = items[cursor.at];
    if (picked !== undefined) void navigate(paths.group(picked.group.id));
  };
  useKeys([
    { key: 'j', label: shared.keys.next, run: cursor.next },
    { key: 'k', label: shared.keys.previous, run: cursor.previous },
    { key: 'Enter', label: shared.keys.open, run: open },
  ]);
  return (
    <Section flush title={text.title} aside={when} more={<Link to={paths.groups}>{text.all}</Link>}>
      <DataState query={calm(query)} isEmpty={(data) => data.items.length === 0} empty={<EmptyState {...text.none} />}>
        {() => <SeenGroups seen={items} at={cursor.at} />}
      </DataState>
    </Section>
  );
}

/** Where nothing has failed, and there is no queue either, what to try is said already. */
function Queues({ quiet }: { quiet: boolean }) {
  const { overview, queues } = useText();
  const { queues: text } = overview;
  const query = useQueues([], useLiveEvery(EVERY));
  const number = query.data?.items.length ?? 0;
  if (quiet && number === 0 && query.error === null) return null;
  return (
    <Section flush title={text.title} more={number > 0 && <Link to={paths.queues}>{text.all(number)}</Link>}>
      <DataState query={calm(query)} lines={4} isEmpty={({ items }) => items.length === 0} empty={<EmptyState {...text.none} />}>
        {({ items, incomplete }) => (
          <>
            {incomplete !== '' && (
              <p className={classes.note}>
                {queues.incomplete} <Untrusted text={incomplete} most={500} />
              </p>
            )}
            <QueueHealth queues={byNeed(items).slice(0, QUEUES)} />
          </>
        )}
      </DataState>
    </Section>
  );
}
