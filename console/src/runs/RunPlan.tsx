import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { Instant } from '@/shared/Instant';
import { Untrusted } from '@/shared/Untrusted';
import { useBrakes } from './brakes';
import { operationLine } from './operation-line';
import { filterOf } from './RunWhat';
import page from './run-page.module.css';

/** Everything that a run does, as whoever approves it has to know it. */
export function RunPlan({ run }: { run: RunJson }) {
  const { runs } = useText();
  const text = runs.plan;
  const format = useFormat();
  const brakes = useBrakes();
  const ceilings = Object.entries(run.ceilings);
  return (
    <section className={`rd-panel ${page.panel ?? ''}`} aria-label={text.title}>
      <h2 className={page.title}>{text.title}</h2>
      <dl className={page.plan}>
        <Fact name={text.reason}>{run.reason === '' ? <span className="rd-dim">{text.noReason}</span> : <Untrusted text={run.reason} most={2000} />}</Fact>
        <Fact name={text.by}>
          <Untrusted text={run.requested_by} most={200} />
          {run.rule !== '' && (
            <>
              {' '}
              (<Untrusted text={runs.what.rule(run.rule)} most={100} />)
            </>
          )}
        </Fact>
        {run.approval?.by != null && (
          <Fact name={runs.approval.granted}>
            <Untrusted text={run.approval.by} most={200} /> {run.approval.at !== null && <Instant at={run.approval.at} />}
          </Fact>
        )}
        <Fact name={text.made}>
          <Instant at={run.created_at} absolute />
        </Fact>
        {run.ended_at !== null && (
          <Fact name={text.ended}>
            <Instant at={run.ended_at} absolute /> <span className="rd-dim">({format.duration((Date.parse(run.ended_at) - Date.parse(run.created_at)) / 1000)})</span>
          </Fact>
        )}
        <Fact name={text.selection}>
          <Letters run={run} />
        </Fact>
        <Fact name={text.target}>
          {run.to_origin ? text.origin : run.target === null ? text.own : <Untrusted mono text={run.target} most={200} />}
        </Fact>
        <Fact name={text.edit}>
          <Edit run={run} />
        </Fact>
        <Fact name={text.quarantined}>{run.quarantined ? text.quarantinedYes : text.quarantinedNo}</Fact>
        <Fact name={text.rate}>{run.rate === null ? runs.unlimited : runs.perSecond(format.number(run.rate))}</Fact>
        {ceilings.length > 0 && (
          <Fact name={text.ceilings}>
            {ceilings.map(([queue, rate]) => (
              <span key={queue} className={page.line}>
                <Untrusted mono text={queue} most={100} /> {runs.perSecond(format.number(rate))}
              </span>
            ))}
          </Fact>
        )}
        <Fact name={text.brakes}>{brakes(run.brakes).join('; ')}</Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const MOST_IDS = 100;

function Letters({ run }: { run: RunJson }) {
  const { runs } = useText();
  const format = useFormat();
  const { ids } = run.selection;
  const filter = filterOf(run.selection);
  const limit = run.at_most === null || run.at_most > run.total ? '' : ` (${runs.plan.limit.toLowerCase()} ${format.number(run.at_most)})`;
  if (ids !== null) {
    const words = runs.what.named(ids.length) + limit;
    return ids.length > MOST_IDS ? <>{words}</> : <Link to={paths.lettersBy(`id:${ids.join(',')}`)}>{words}</Link>;
  }
  return (
    <>
      <Link to={filter === '' ? paths.letters : paths.lettersBy(filter)}>
        {filter === '' ? runs.what.all : <Untrusted mono text={filter} most={500} />}
      </Link>
      {limit}
    </>
  );
}

function Edit({ run }: { run: RunJson }) {
  const { runs } = useText();
  const text = runs.plan;
  if (run.edit.length === 0 && run.schema === '') return <>{text.noEdit}</>;
  return (
    <>
      <ol className={page.operations}>
        {run.edit.map((each, at) => (
          <li key={at}>
            <Untrusted mono text={operationLine(each, text.hidden)} most={300} />
          </li>
        ))}
      </ol>
      {run.allow_sensitive && <p className={page.caution}>{text.sensitive}</p>}
      {run.schema !== '' && (
        <details>
          <summary>
            {text.schema}: {text.schemaThere}
          </summary>
          <Untrusted mono block text={run.schema} most={20_000} />
        </details>
      )}
    </>
  );
}
