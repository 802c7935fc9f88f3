type Pressed = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>;

/** The target of a key. In a field or a dialog a question mark is text. */
export function shortcut({ key, ctrlKey, metaKey, altKey }: Pressed, target: Pick<Element, 'closest'> | null): 'palette' | 'keyboard' | null {
  const inDialog = target?.closest('[role=dialog]');
  if (key.toLowerCase() === 'k' && (ctrlKey || metaKey) && !altKey) return inDialog ? null : 'palette';
  if (key === '?' && !ctrlKey && !metaKey && !inDialog && !target?.closest('input, textarea, select, [contenteditable], [role=textbox]')) return 'keyboard';
  return null;
}
