/** Gives a file to the browser. It is made in memory: nothing is asked of the server by it. */
export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A name that any file system takes. */
export const fileName = (text: string) => text.replace(/[^\w.-]+/g, '_').replace(/^\.+/, '').slice(0, 80) || 'letter';
