import type { RunJson } from '@/api/types';
import { useFormat, useText } from '@/locales/language';
import { Untrusted } from '@/shared/Untrusted';
import { written } from '@/shared/filter-completion';
import classes from './runs.module.css';

/** Its selection as a filter: what stands in fields of its own is written as terms. */
export function filterOf(selection: RunJson['selection']): string {
  const terms = (['status', 'queue', 'handler', 'type', 'group'] as const).flatMap((name) => {
    const value = selection[name];
    return value == null ? [] : [`${name}:${written(value)}`];
  });
  if (selection.created_after != null) terms.push(`created:>=${selection.created_after}`);
  if (selection.created_before != null) terms.push(`created:<${selection.created_before}`);
  return [selection.q ?? '', ...terms].filter((each) => each !== '').join(' ');
}

/** What a run is about, on one line. */
export function RunWhat({ run }: { run: RunJson }) {
  const { runs } = useText();
  const text = runs.what;
  const format = useFormat();
  const { ids } = run.selection;
  const filter = filterOf(run.selection);
  const tags = [
    run.target !== null ? `→ ${run.target}` : '',
    run.to_origin ? `→ ${text.origin}` : '',
    run.edit.length > 0 ? text.edited(run.edit.length) : '',
    run.quarantined ? text.quarantined : '',
    run.rule !== '' ? text.rule(run.rule) : '',
  ].filter((each) => each !== '');
  return (
    <span className={classes.what}>
      <strong>{text.letters(run.total)}</strong>
      {ids === null && (filter === '' ? <span className="rd-dim"> {text.all}</span> : <Untrusted mono text={filter} most={160} />)}
      {ids?.length === 1 && <span className="rd-dim"><Untrusted mono text={(ids[0] ?? '').slice(0, 13)} /></span>}
      {ids !== null && ids.length > 1 && ids.length !== run.total && <span className="rd-dim">{text.named(ids.length)}</span>}
      {tags.map((each) => (
        <span key={each} className={classes.tag}>
          <Untrusted text={each} most={80} />
        </span>
      ))}
      {run.at_most !== null && run.at_most < run.total && <span className="rd-dim">≤ {format.number(run.at_most)}</span>}
    </span>
  );
}
