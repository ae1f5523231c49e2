import { Button } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Link, useParams } from 'react-router';
import { useGroup } from '@/api/groups';
import { problemFrom } from '@/api/problem';
import type { FailureGroup } from '@/api/types';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { EmptyState } from '@/shared/EmptyState';
import { useLiveEvery } from '@/shared/live';
import { PageHeader } from '@/shared/PageHeader';
import { Untrusted } from '@/shared/Untrusted';
import { visible } from '@/shared/untrusted';
import { Attempts } from './Attempts';
import { Common } from './Common';
import { Example } from './Example';
import { GroupActions } from './GroupActions';
import { GroupFacts } from './GroupFacts';
import { GroupLetters } from './GroupLetters';
import { StateMark } from './GroupMarks';
import { partsOfTitle, shortTitle } from './GroupTitle';
import { History } from './History';
import { Merged } from './Merged';
import { Notes } from './Notes';
import { Redrives } from './Redrives';
import { stateOf } from './state';
import { Trend } from './Trend';
import classes from './GroupPage.module.css';

const EVERY = 10_000;
const NOT_FOUND = 404;

/** One cause: where it breaks, since when, what its letters have in common, and what can be done. */
export function GroupPage() {
  const { groups: text } = useText();
  const { id = '' } = useParams();
  const query = useGroup(id, useLiveEvery(EVERY));
  if (query.data === undefined && query.error !== null && problemFrom(query.error).status === NOT_FOUND) {
    const back = (
      <Button component={Link} to={paths.groups}>
        {text.noMatch.clear}
      </Button>
    );
    return <EmptyState {...text.missing} action={back} />;
  }
  return (
    <>
      {query.data === undefined && <PageHeader title={text.title} />}
      <DataState query={query} lines={12}>
        {(group) => <Whole key={group.id} group={group} askedAt={query.dataUpdatedAt} />}
      </DataState>
    </>
  );
}

function Whole({ group, askedAt }: { group: FailureGroup; askedAt: number }) {
  const every = useLiveEvery(EVERY);
  return (
    <>
      <Head group={group} />
      <Warning group={group} />
      <GroupFacts group={group} />
      <div className={classes.columns}>
        <div className={classes.main}>
          <Trend trend={group.trend} askedAt={askedAt} />
          <Common id={group.id} />
          <Example id={group.example} />
          <GroupLetters group={group} live={every} />
        </div>
        <div className={classes.side}>
          <Notes group={group} />
          <Redrives id={group.id} live={every} />
          <Attempts id={group.id} />
          <Merged group={group} />
          <History history={group.history} />
        </div>
      </div>
    </>
  );
}

function Head({ group }: { group: FailureGroup }) {
  const { groups: text } = useText();
  const { type, text: message } = partsOfTitle(group.title);
  return (
    <PageHeader
      tab={visible(shortTitle(group.title)).slice(0, 80)}
      above={
        <span className={classes.above}>
          <Link to={paths.groups}>{text.title}</Link>
          <Untrusted mono text={group.queue} most={80} />
          {group.handler !== '' && <Untrusted mono text={group.handler} most={80} />}
          <span className={classes.state}>
            <StateMark state={stateOf(group)} />
          </span>
        </span>
      }
      title={
        <>
          {type !== '' && <Untrusted text={type} most={200} />}
          {message !== '' && (
            <span className={classes.message}>
              <Untrusted text={message} most={500} />
            </span>
          )}
        </>
      }
      actions={<GroupActions group={group} />}
    />
  );
}

/** What somebody said against sending it back stands above everything. */
function Warning({ group }: { group: FailureGroup }) {
  const { actions: text } = useText().groups;
  if (group.verdict !== 'do not replay' && group.verdict !== 'requires fix') return null;
  return (
    <p className={classes.warning} role="note">
      <IconAlertTriangle size={16} stroke={1.9} aria-hidden />
      {group.verdict === 'do not replay' ? text.doNotReplay : text.requiresFix}
    </p>
  );
}
