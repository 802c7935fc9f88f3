import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

import { useText } from '../text';
import { evaluate, type Definition, type Evaluation } from './definition';
import type { Values } from './values';

/** The input of a moment ago: it follows when there was no typing for that long. */
function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** The forms as they are with these values. An answer that comes after something else was typed is dropped: the query is another one then. */
export function useFilled(definition: Definition, filled: { name: string; values: Values }) {
  const messages = useText().wizard;
  const settled = useSettled(filled, 300);
  const asked = useQuery({
    queryKey: ['forms', definition.package, 'filled', settled],
    queryFn: ({ signal }): Promise<Evaluation> => evaluate(definition, settled.name, settled.values, messages, signal),
    placeholderData: (before) => before,
    gcTime: 10_000, // values may hold secrets
  });
  return {
    evaluation: asked.data ?? { forms: definition.forms, errors: [], model: null },
    /** Whether the evaluation is of the present input. */
    isCurrent: settled === filled && asked.isSuccess && !asked.isPlaceholderData,
    error: asked.error,
  };
}
