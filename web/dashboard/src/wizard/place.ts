import { createContext, useContext } from 'react';

import { useRegionOf } from '../regions/regions';

/** Where an application is added: its environment, and the packages and fields that led to a nested dialog. */
export const Place = createContext<{ environment: string; path: string[] }>({ environment: '', path: [] });

/** The region that a form names for its fields; '' where it names none. */
export const FormRegion = createContext('');

/** The region of choices: the form's, else the environment's, '' for Burano's own; undefined until it is known. */
export function useAskedRegion(): string | undefined {
  const { environment } = useContext(Place);
  const named = useContext(FormRegion);
  const own = useRegionOf(environment);
  return named || own;
}
