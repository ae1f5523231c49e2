import { IconLock } from '@tabler/icons-react';
import { useServerSettings } from '@/api/settings';
import type { LoadedSettings } from '@/api/types';
import { useText } from '@/locales/language';
import { DataState } from '@/shared/DataState';
import { Duration } from '@/shared/Duration';
import { EmptyState } from '@/shared/EmptyState';
import { useCan } from '@/shared/session';
import { Untrusted } from '@/shared/Untrusted';
import { QueueRules, Rules } from './LoadedRules';
import { Fact, Facts, Section } from './Section';
import classes from './Settings.module.css';

/** What the server works by, as it has loaded it. Nothing here can be changed from here. */
export function Loaded() {
  const { settings } = useText();
  const may = useCan()('letters:read');
  const query = useServerSettings(may);
  if (!may) {
    return (
      <div className="rd-panel">
        <EmptyState {...settings.locked('letters:read')} icon={IconLock} />
      </div>
    );
  }
  return <DataState query={query}>{({ loaded }) => <All loaded={loaded} />}</DataState>;
}

function All({ loaded }: { loaded: LoadedSettings }) {
  const { loaded: text } = useText().settings;
  return (
    <>
      <p className={`${classes.intro ?? ''} rd-dim`}>
        {text.intro}
        {loaded.partial && ` ${text.partial}`}
      </p>
      <div className={classes.pair}>
        <Retention loaded={loaded} />
        <Approval approval={loaded.approval} />
      </div>
      <Rules rules={loaded.rules} partial={loaded.partial} />
      <QueueRules queues={loaded.queues} />
    </>
  );
}

function YesNo({ is }: { is: boolean }) {
  const { loaded: text } = useText().settings;
  return <>{is ? text.yes : text.no}</>;
}

function Retention({ loaded: { retention, masking, encryption } }: { loaded: LoadedSettings }) {
  const { loaded: text } = useText().settings;
  return (
    <Section title={text.retention.title} intro={text.retention.open}>
      <Facts>
        <Fact label={text.retention.keep}>
          <Duration seconds={retention.keep} />
        </Fact>
        <Fact label={text.retention.keepDiscarded}>
          <Duration seconds={retention.keep_discarded} />
        </Fact>
        <Fact label={text.retention.every}>{retention.every === null ? text.never : <Duration seconds={retention.every} />}</Fact>
        <Fact label={text.retention.archives}>
          <YesNo is={retention.archives} />
        </Fact>
        <Fact label={text.privacy.masking}>
          <YesNo is={masking} />
        </Fact>
        <Fact label={text.privacy.encryption}>
          <YesNo is={encryption} />
        </Fact>
      </Facts>
    </Section>
  );
}

function Approval({ approval }: { approval: LoadedSettings['approval'] }) {
  const { settings, shared } = useText();
  const { approval: text } = settings.loaded;
  const { more_than, queues, edits, quarantined, rules, expires_after } = approval;
  const none = more_than === null && queues.length === 0 && !edits && !quarantined;
  return (
    <Section title={text.title} {...(none ? { intro: text.none } : {})}>
      {!none && (
        <Facts>
          {more_than !== null && <Fact label={text.moreThan}>{shared.letters(more_than)}</Fact>}
          {queues.length > 0 && (
            <Fact label={text.queues}>
              <Untrusted mono text={queues.join(', ')} most={2000} />
            </Fact>
          )}
          <Fact label={text.edits}>
            <YesNo is={edits} />
          </Fact>
          <Fact label={text.quarantined}>
            <YesNo is={quarantined} />
          </Fact>
          <Fact label={text.rules}>
            <YesNo is={rules} />
          </Fact>
          <Fact label={text.expires}>
            <Duration seconds={expires_after} />
          </Fact>
        </Facts>
      )}
    </Section>
  );
}
