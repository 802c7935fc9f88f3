import { Content } from '@patternfly/react-core';

import { useText } from '../text';
import { Changes } from './Changes';
import { countChanges } from './draft';
import { KubernetesChanges } from './KubernetesChanges';
import { Losses } from './Losses';
import { Means } from './Means';
import { without, type Consent, type Plan } from './plan';
import { Problems } from './Problems';
import { useDraft } from './useDraft';

interface Props {
  environment: string;
  plan: Plan;
  /** The losses that are listed elsewhere, with the questions about them. */
  asked?: Consent[];
  /** The changes are shown at once. */
  isOpen?: boolean;
}

/** The effects of a deployment. */
export function PlanDetails({ environment, plan, asked = [], isOpen }: Props) {
  const words = useText().draft;
  const { draft } = useDraft(environment);
  const { changes, kubernetes, losses, means, notes, problems } = plan;
  const counts = countChanges(changes);
  return (
    <>
      <Problems environment={environment} session={draft?.session} problems={problems} />
      <p role="status">{changes.length === 0 ? words.nothing : words.counts(counts.added, counts.changed, counts.removed)}</p>
      {changes.length > 0 && <Changes environment={environment} changes={changes} isOpen={isOpen} />}
      {kubernetes.length > 0 && <KubernetesChanges changes={kubernetes} />}
      <Means means={without(means, asked)} />
      {notes.length > 0 && <Content component="p">{words.notes}</Content>}
      <Means means={notes} />
      {losses.length > 0 && <Losses losses={losses} />}
    </>
  );
}
