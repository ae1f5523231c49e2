// Fails if what the first page needs is more script than it should be.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const LIMIT = 250_000;
const built = new URL('../../src/redrive/console/', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', built), 'utf8'));

function loadedWith(name, seen = new Set()) {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const each of manifest[name].imports ?? []) loadedWith(each, seen);
  return seen;
}

function zipped(names) {
  const files = new Set([...names].map((name) => manifest[name].file));
  return [...files].reduce((sum, file) => sum + gzipSync(readFileSync(new URL(file, built))).length, 0);
}

const entry = Object.keys(manifest).find((name) => manifest[name].isEntry);
const first = loadedWith(entry);
// The page somebody lands on, and the language they read it in, come with it.
const pages = Object.keys(manifest).filter((name) => manifest[name].isDynamicEntry && /Page\.tsx$/.test(name));
const language = Object.keys(manifest).filter((name) => manifest[name].isDynamicEntry && /locales/.test(name));
const base = zipped(new Set([...first, ...language.slice(0, 1).flatMap((name) => [...loadedWith(name)])]));
console.log(`first load: ${base} bytes of script, gzipped (limit ${LIMIT})`);
let worst = base;
for (const page of pages) {
  const size = zipped(new Set([...first, ...language.slice(0, 1), ...loadedWith(page)]));
  worst = Math.max(worst, size);
  console.log(`  with ${page}: ${size}`);
}
if (worst > LIMIT) {
  console.error(`${worst} bytes are more than ${LIMIT}: load something of it lazily`);
  process.exit(1);
}
