import { Kbd, Modal } from '@mantine/core';
import { useText } from '@/locales/language';
import type { BoundKeys } from './keys';
import classes from './KeyHints.module.css';

interface Props {
  keys: readonly BoundKeys[] | null;
  onClose: () => void;
}

/** What `?` shows: the keys of this page, and those of all pages. */
export function KeyHints({ keys, onClose }: Props) {
  const { shared } = useText();
  return (
    <Modal opened={keys !== null} onClose={onClose} title={shared.keys.title} closeButtonProps={{ 'aria-label': shared.close }}>
      {(['page', 'everywhere'] as const).map((section) => {
        const found = (keys ?? []).filter((each) => each.section === section).flatMap((each) => each.bindings);
        if (found.length === 0) return null;
        return (
          <section key={section}>
            <h3 className={classes.section}>{shared.keys.section[section]}</h3>
            <dl className={classes.list}>
              {found.map(({ key, label }) => (
                <div key={key} className={classes.line}>
                  <dt>{label}</dt>
                  <dd>
                    {key.split(' ').map((each) => (
                      <Kbd key={each}>{each === 'Enter' ? '↵' : each}</Kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        );
      })}
    </Modal>
  );
}
