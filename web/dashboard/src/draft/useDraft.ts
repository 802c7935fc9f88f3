import { useQuery } from '@tanstack/react-query';

import { useSession } from '../session/session';
import { draftQuery } from './draft';

/** The draft that the signed-in user has of an environment, and who that is. */
export function useDraft(environment: string) {
  const user = useSession().user?.id ?? '';
  const asked = useQuery(draftQuery(user, environment));
  return { user, draft: asked.data ?? null, isPending: asked.isPending, error: asked.error };
}
