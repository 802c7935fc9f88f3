import { Alert, List, ListItem } from '@patternfly/react-core';

import { useText } from '../text';
import { showMemory } from '../wizard/cloud';
import type { Need } from './catalog';

/** What an application lacks in the cloud of the project, and who can mend it. */
export function Missing({ of, isShort = false }: { of: Need; isShort?: boolean }) {
  const words = useText().needs;
  const resources = useText().wizard.resources as Record<string, string>;
  const sentence = ({ kind, name, vcpus = 0, ram = 0, disk = 0 }: Need['missing'][number]): string => {
    switch (kind) {
      case 'image':
        return words.image(name);
      case 'container-image':
        return words.containerImage(name);
      case 'quota':
        return words.quota(resources[name] ?? name);
      default:
        return words.flavor(vcpus, showMemory(ram), disk);
    }
  };
  return (
    <Alert variant="warning" isInline isPlain={isShort} title={words.title} className="burano-breaks burano-spaced">
      <List isPlain>
        {of.missing.map((one) => (
          <ListItem key={`${one.kind} ${one.name}`}>
            {sentence(one)} {words.mends(one.mends.map((role) => words.roles[role]).join(words.or))}
          </ListItem>
        ))}
      </List>
    </Alert>
  );
}
