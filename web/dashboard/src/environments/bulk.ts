// The same for several environments.
import type { Environment } from './environments';

export interface Refused {
  environment: Environment;
  error: Error;
}

/** Does something for each, one after the other; one that is refused does not keep it from the others. */
export async function forEach(environments: Environment[], send: (environment: Environment) => Promise<unknown>): Promise<Refused[]> {
  const refused: Refused[] = [];
  for (const environment of environments) {
    try {
      await send(environment);
    } catch (error) {
      refused.push({ environment, error: error as Error });
    }
  }
  return refused;
}

/** A list of names in one line. */
export const namesOfAll = (environments: Environment[]): string => environments.map((one) => one.name ?? '').join(', ');
