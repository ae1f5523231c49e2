import { askRaw } from './client';

/** Resolves when the server and its store answer. */
export const ready = () => askRaw('get', '/readyz');
