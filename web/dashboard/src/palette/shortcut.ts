type Pressed = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>;

/** What a key opens. Who types into a field, or is in a dialog, types a question mark. */
export function shortcut({ key, ctrlKey, metaKey, altKey }: Pressed, target: Pick<Element, 'closest'> | null): 'palette' | 'keyboard' | null {
  const inDialog = target?.closest('[role=dialog]');
  if (key.toLowerCase() === 'k' && (ctrlKey || metaKey) && !altKey) return inDialog ? null : 'palette';
  if (key === '?' && !ctrlKey && !metaKey && !inDialog && !target?.closest('input, textarea, select, [contenteditable], [role=textbox]')) return 'keyboard';
  return null;
}
