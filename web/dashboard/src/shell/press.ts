import { useCallback, useEffect, useRef } from 'react';

/**
 * Delays changes of the layout until the end of a press. A user who leaves a field by pressing a button presses it at
 * its place: errors that appear on leaving would move it away from below the pointer, and the click would be lost.
 */
export function useAfterPress(): (act: () => void) => void {
  const pressed = useRef(false);
  const waiting = useRef<(() => void)[]>([]);
  useEffect(() => {
    const down = () => {
      pressed.current = true;
    };
    // The click comes in the same task as the release.
    const up = () => {
      window.setTimeout(() => {
        pressed.current = false;
        for (const act of waiting.current.splice(0)) act();
      });
    };
    const events: [string, () => void][] = [['pointerdown', down], ['pointerup', up], ['pointercancel', up], ['dragend', up]];
    for (const [name, listener] of events) window.addEventListener(name, listener, true);
    return () => {
      for (const [name, listener] of events) window.removeEventListener(name, listener, true);
    };
  }, []);
  return useCallback((act) => {
    if (pressed.current) waiting.current.push(act);
    else act();
  }, []);
}
