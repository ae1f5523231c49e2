import { Checkbox } from '@mantine/core';
import { useState } from 'react';
import { FACETS, useFacets, type FacetName, type Facets as Found } from '@/api/letter-facets';
import { useFormat, useText } from '@/locales/language';
import { known } from '@/shared/known';
import { ProblemNote } from '@/shared/ProblemNote';
import { Untrusted } from '@/shared/Untrusted';
import { toggled, valuesIn, without } from './filter-terms';
import classes from './Facets.module.css';

const FEW = 6;

interface Props {
  filter: string;
  onFilter: (next: string) => void;
}

/** What the letters that match are, with counts; a click narrows the filter down to it. */
export function Facets({ filter, onFilter }: Props) {
  const { letters: text } = useText();
  const format = useFormat();
  const query = useFacets(filter);
  const found = query.data;
  return (
    <aside className={classes.facets} aria-label={text.facets.title}>
      {query.error !== null && found === undefined && <ProblemNote error={query.error} />}
      {found !== undefined && !found.exact && <p className={classes.partly}>{text.facets.partly(format.number(found.counted))}</p>}
      {FACETS.map((name) => (
        <Facet key={name} name={name} found={found} filter={filter} onFilter={onFilter} />
      ))}
    </aside>
  );
}

interface FacetProps extends Props {
  name: FacetName;
  found: Found | undefined;
}

function Facet({ name, found: narrowed, filter, onFilter }: FacetProps) {
  const { letters: text } = useText();
  // What else could be chosen of this field is seen without what is chosen of it.
  const others = without(filter, name);
  const wider = useFacets(others, others !== filter);
  const found = others === filter ? narrowed : wider.data;
  const [all, setAll] = useState(false);
  const chosen = valuesIn(filter, name).map((each) => (name === 'status' ? each.toUpperCase() : each));
  const values = found?.[name] ?? [];
  const missing = chosen.filter((each) => !values.some(({ value }) => value === each)).map((value) => ({ value, letters: 0 }));
  const lines = [...values, ...missing];
  const shown = all ? lines : lines.slice(0, FEW);
  if (lines.length === 0) return null;
  return (
    <fieldset className={classes.facet}>
      <legend className={classes.legend}>{text.columns[FACET_TITLES[name]]}</legend>
      {shown.map(({ value, letters }) => (
        <label key={value} className={classes.line}>
          <Checkbox
            size="xs"
            checked={chosen.includes(value)}
            onChange={() => onFilter(toggled(filter, name, spelled(name, value, filter)))}
          />
          <span className={classes.value}>
            <FacetValue name={name} value={value} />
          </span>
          <Number letters={letters} exact={found?.exact ?? true} />
        </label>
      ))}
      {lines.length > shown.length && (
        <button type="button" className={classes.more} onClick={() => setAll(true)}>
          {text.facets.more(lines.length - shown.length)}
        </button>
      )}
    </fieldset>
  );
}

const FACET_TITLES = { status: 'status', queue: 'queue', type: 'error', handler: 'handler' } as const;

/** A status may be written in any case; what is taken out must be what is there. */
function spelled(name: FacetName, value: string, filter: string): string {
  if (name !== 'status') return value;
  return valuesIn(filter, name).find((each) => each.toUpperCase() === value) ?? value;
}

function FacetValue({ name, value }: { name: FacetName; value: string }) {
  const { letters: text, shared } = useText();
  if (value === '') return <span className="rd-dim">{text.facets.empty}</span>;
  if (name === 'status') return <Untrusted text={known<string>(shared.status, value) ?? value} most={60} />;
  return <Untrusted mono={name !== 'type'} text={value} most={60} />;
}

function Number({ letters, exact }: { letters: number; exact: boolean }) {
  const { letters: text } = useText();
  const format = useFormat();
  const told = format.number(letters);
  return (
    <span className={classes.number} title={exact ? undefined : text.facets.atLeast(told)}>
      {exact ? told : `≥ ${told}`}
    </span>
  );
}
