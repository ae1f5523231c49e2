import { shortType } from '@/shared/short-type';
import { Untrusted } from '@/shared/Untrusted';
import classes from './GroupTitle.module.css';

/** A title is a type, a colon and a text in which what varies is taken out. Some have only one of the two. */
export function partsOfTitle(title: string): { type: string; text: string } {
  const colon = title.indexOf(': ');
  const type = colon === -1 ? title : title.slice(0, colon);
  if (/\s/.test(type)) return { type: '', text: title };
  return { type, text: colon === -1 ? '' : title.slice(colon + 2) };
}

/** "NoCustomer: order <number> has no customer" */
export function shortTitle(title: string): string {
  const { type, text } = partsOfTitle(title);
  return [shortType(type), text].filter(Boolean).join(': ');
}

/** The cause in one line: the type's last part strong, and its text as far as there is room. */
export function GroupTitle({ title }: { title: string }) {
  const { type, text } = partsOfTitle(title);
  return (
    <span className={classes.line}>
      {type !== '' && (
        <span className={classes.type}>
          <Untrusted text={shortType(type)} most={80} />
        </span>
      )}
      {text !== '' && (
        <span className={classes.text}>
          <Untrusted text={text} most={200} />
        </span>
      )}
    </span>
  );
}
