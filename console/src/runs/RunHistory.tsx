import type { Happening } from '@/api/types';
import { useText } from '@/locales/language';
import { Instant } from '@/shared/Instant';
import { known } from '@/shared/known';
import { Untrusted } from '@/shared/Untrusted';
import page from './run-page.module.css';

/** What happened to the run itself, the newest first. */
export function RunHistory({ history }: { history: readonly Happening[] }) {
  const { runs } = useText();
  const text = runs.history;
  if (history.length === 0) return null;
  return (
    <section className={`rd-panel ${page.panel ?? ''}`} aria-label={text.title}>
      <h2 className={page.title}>{text.title}</h2>
      <ol className={page.history}>
        {[...history].reverse().map((each, at) => (
          <li key={at}>
            <p>
              <strong>{known(text.what, each.what) ?? <Untrusted text={each.what} most={80} />}</strong> {text.by} <Untrusted text={each.by} most={120} />
              <span className={page.when}>
                <Instant at={each.at} />
              </span>
            </p>
            {each.reason !== '' && (
              <p className="rd-dim">
                <Untrusted text={each.reason} most={600} />
              </p>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
