import { useQuery } from '@tanstack/react-query';

import { useSession } from '../session/session';
import { draftQuery } from './draft';

/** The signed-in user's draft of an environment, and the user. */
export function useDraft(environment: string) {
  const user = useSession().user?.id ?? '';
  const asked = useQuery(draftQuery(user, environment));
  return { user, draft: asked.data ?? null, isPending: asked.isPending, error: asked.error };
}
