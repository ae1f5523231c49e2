import { IconMailCheck } from '@tabler/icons-react';
import { basePath } from '@/api/page';
import { useText } from '@/locales/language';
import { Command } from '@/shared/Command';
import classes from './FirstSteps.module.css';

const POST = `curl -H "Authorization: Bearer $REDRIVE_TOKEN" -H 'Content-Type: application/json' ${window.location.origin}${basePath}/api/v1/letters \\
  -d '{"queue": "orders", "message_id": "order-17", "body": "{\\"order\\": 17}", "error_type": "java.io.IOException"}'`;

const STEPS = [
  ['demo', 'redrive demo'],
  ['work', 'redrive work shop:app'],
  ['collect', 'redrive collect orders_dlq'],
  ['post', POST],
] as const;

/** What to do where nothing has failed yet. */
export function FirstSteps() {
  const { first } = useText().overview;
  return (
    <section className={`rd-panel ${classes.panel ?? ''}`}>
      <IconMailCheck size={30} stroke={1.4} aria-hidden className={classes.icon} />
      <h2 className={classes.title}>{first.title}</h2>
      <p className={classes.what}>{first.what}</p>
      <ul className={classes.steps}>
        {STEPS.map(([name, command]) => (
          <li key={name}>
            <span className={classes.name}>{first[name]}</span>
            <Command text={command} />
          </li>
        ))}
      </ul>
    </section>
  );
}
