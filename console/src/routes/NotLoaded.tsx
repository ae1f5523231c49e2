import classes from './NotLoaded.module.css';

/** No catalogue has these texts: catalogues are what could not be loaded. */
const TOLD = [
  { lang: 'en', what: 'Redrive could not be loaded: the server did not answer.', reload: 'Reload' },
  { lang: 'pt-BR', what: 'Não foi possível carregar o Redrive: o servidor não respondeu.', reload: 'Recarregar' },
] as const;

/** In place of the console, where its texts are missing. It needs nothing but itself. */
export function NotLoaded() {
  return (
    <main role="alert" className={classes.told}>
      {TOLD.map(({ lang, what, reload }) => (
        <p key={lang} lang={lang}>
          {what}{' '}
          <button type="button" onClick={() => window.location.reload()}>
            {reload}
          </button>
        </p>
      ))}
    </main>
  );
}
