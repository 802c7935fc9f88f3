import { createContext } from 'react';

/** Where an application is added: its environment, and the packages and fields that led to a nested dialog. */
export const Place = createContext<{ environment: string; path: string[] }>({ environment: '', path: [] });
