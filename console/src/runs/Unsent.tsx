import { Link } from 'react-router';
import { useUnsent } from '@/api/runs';
import type { RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { known } from '@/shared/known';
import table from '@/shared/table.module.css';
import { Untrusted } from '@/shared/Untrusted';
import page from './run-page.module.css';

/** Letters that were refused or passed over, with why. */
export function Unsent({ run }: { run: RunJson }) {
  const count = run.progress.refused + run.progress.passed_over;
  return count === 0 ? null : <UnsentList key={count} run={run} count={count} />;
}

function UnsentList({ run, count }: { run: RunJson; count: number }) {
  const { runs } = useText();
  const text = runs.unsent;
  const format = useFormat();
  const query = useUnsent(run.id);
  return (
    <section className={`rd-panel ${page.list ?? ''}`} aria-label={text.title}>
      <div className={page.listHead}>
        <h2 className={page.title}>
          {text.title} <span className="rd-dim">{format.number(count)}</span>
        </h2>
      </div>
      <DataState query={query} lines={3}>
        {({ items }) => (
          <>
            <table className={table.table}>
              <thead>
                <tr>
                  <th scope="col">{runs.outcomes.letter}</th>
                  <th scope="col">{runs.outcomes.outcome}</th>
                  <th scope="col">{text.reason}</th>
                </tr>
              </thead>
              <tbody>
                {items.map((each) => (
                  <tr key={each.letter_id}>
                    <td>
                      <Link to={paths.letter(each.letter_id)} className="rd-mono">
                        <Untrusted text={each.letter_id.slice(0, 13)} />
                      </Link>
                    </td>
                    <td>
                      <Untrusted text={known(runs.outcomes.words, each.outcome) ?? each.outcome} most={60} />
                    </td>
                    <td className={table.main}>
                      <Untrusted text={each.reason} most={400} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
            {items.length < count && <p className={page.nothing}>{text.first(format.number(items.length), format.number(count))}</p>}
          </>
        )}
      </DataState>
    </section>
  );
}
