import { Link } from 'react-router';
import { useLetter } from '@/api/letters';
import { useText } from '@/locales/language';
import { paths } from '@/routes/paths';
import { DataState } from '@/shared/DataState';
import { Instant } from '@/shared/Instant';
import { StackTrace } from '@/shared/StackTrace';
import { Section } from '@/shared/Section';

/** Where it breaks: the last attempt of the group's newest letter. */
export function Example({ id }: { id: string | null }) {
  const { trace: text } = useText().groups;
  if (id === null) {
    return (
      <Section title={text.title}>
        <p className="rd-dim">{text.none}</p>
      </Section>
    );
  }
  return <Newest id={id} />;
}

function Newest({ id }: { id: string }) {
  const { trace: text } = useText().groups;
  const query = useLetter(id);
  const last = query.data?.letter.failures.at(-1);
  return (
    <Section
      title={text.title}
      aside={last !== undefined && `${text.of}, ${text.attempt(last.attempt)}`}
      more={
        last !== undefined && (
          <Link to={paths.letter(id)}>
            <Instant at={last.at} />
          </Link>
        )
      }
    >
      <DataState query={query} lines={8} isEmpty={({ letter }) => letter.failures.length === 0} empty={<p className="rd-dim">{text.unread}</p>}>
        {() => <StackTrace chain={last?.chain ?? []} />}
      </DataState>
    </Section>
  );
}
