import { Button } from '@mantine/core';
import { IconFilter } from '@tabler/icons-react';
import { useState } from 'react';
import { Link } from 'react-router';
import { useCommon, type Commonality, type Comparison } from '@/api/insights';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { Untrusted } from '@/shared/Untrusted';
import { Section } from '@/shared/Section';
import classes from './Common.module.css';

const AT_FIRST = 6;

/** What the group's letters have that others of the queue have not: often the cause. */
export function Common({ id }: { id: string }) {
  const { common: text } = useText().groups;
  const format = useFormat();
  const query = useCommon(id);
  const { here = 0, elsewhere = 0 } = query.data ?? {};
  const compared = here > 0 && elsewhere > 0;
  return (
    <Section title={text.title} aside={compared && text.what(format.number(here), format.number(elsewhere))}>
      <DataState query={query} lines={5}>
        {(data) =>
          data.commonalities.length === 0 ? (
            <p className={classes.none}>{compared ? text.none : text.noOthers}</p>
          ) : (
            <Found id={id} compared={data} />
          )
        }
      </DataState>
    </Section>
  );
}

function Found({ id, compared }: { id: string; compared: Comparison }) {
  const { common: text } = useText().groups;
  const [all, setAll] = useState(false);
  const found = all ? compared.commonalities : compared.commonalities.slice(0, AT_FIRST);
  const left = compared.commonalities.length - found.length;
  return (
    <>
      <ul className={classes.list}>
        {found.map((each) => (
          <Shared key={`${each.name} ${each.relation} ${each.value ?? ''}`} group={id} shared={each} compared={compared} />
        ))}
      </ul>
      {left > 0 && (
        <Button className={classes.more ?? ''} size="compact-xs" variant="subtle" onClick={() => setAll(true)}>
          {text.more(left)}
        </Button>
      )}
    </>
  );
}

interface SharedProps {
  group: string;
  shared: Commonality;
  compared: Comparison;
}

function Shared({ group, shared, compared }: SharedProps) {
  const { common: text } = useText().groups;
  return (
    <li className={classes.shared}>
      <span className={classes.what}>
        <Untrusted mono text={shared.name} most={120} />
        <Value shared={shared} />
        {shared.filter !== null && (
          <Link className={classes.filter} to={paths.lettersBy(`group:${group} ${shared.filter}`)} title={text.filter} aria-label={text.filter}>
            <IconFilter size={14} stroke={1.8} aria-hidden />
          </Link>
        )}
      </span>
      <Share label={text.here} count={shared.here} all={compared.here} strong />
      <Share label={text.elsewhere} count={shared.elsewhere} all={compared.elsewhere} />
    </li>
  );
}

function Value({ shared }: { shared: Commonality }) {
  const { common: text } = useText().groups;
  if (shared.relation !== 'is') return <span className={classes.relation}>{shared.relation === 'exists' ? text.exists : text.missing}</span>;
  return (
    <span className={classes.value}>
      <span className="rd-dim">= </span>
      {shared.value === '' ? <i className="rd-dim">{text.empty}</i> : <Untrusted mono text={shared.value ?? ''} most={120} />}
    </span>
  );
}

interface ShareProps {
  label: string;
  count: number;
  all: number;
  strong?: boolean;
}

function Share({ label, count, all, strong = false }: ShareProps) {
  const { common: text } = useText().groups;
  const format = useFormat();
  const share = all === 0 ? 0 : count / all;
  return (
    <div className={classes.share}>
      <span className="rd-dim">{label}</span>
      <span className={classes.track} aria-hidden>
        <span className={strong ? classes.here : classes.elsewhere} style={{ width: `${share * 100}%` }} />
      </span>
      <span className={strong ? classes.percent : 'rd-dim'}>{format.percent(share)}</span>
      <span className={classes.count}>{text.of(format.number(count), format.number(all))}</span>
    </div>
  );
}
