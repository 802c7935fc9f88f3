import { Alert, List, ListItem } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';

import { useText } from '../text';
import { showRequirements } from '../wizard/cloud';
import { needsQuery, type Need } from './catalog';

/** The unmet needs of a package in a region, and who can meet them; nothing where they are not known. A notice only: it hinders nobody. */
export function MissingIn({ region, id }: { region: string; id: string }) {
  const needs = useQuery(needsQuery(region)).data?.get(id);
  return needs && needs.missing.length > 0 ? <Missing of={needs} /> : null;
}

/** The unmet needs of an application, and who can meet them. */
export function Missing({ of, isShort = false }: { of: Need; isShort?: boolean }) {
  const text = useText();
  const words = text.needs;
  const resources = text.wizard.resources as Record<string, string>;
  const sentence = ({ kind, name, vcpus, ram, disk }: Need['missing'][number]): string => {
    switch (kind) {
      case 'image':
        return words.image(name);
      case 'container-image':
        return words.containerImage(name);
      case 'quota':
        return words.quota(resources[name] ?? name);
      default:
        return words.flavor(showRequirements({ least: { vcpus, ram, disk }, most: {} }, text.details).join(', '));
    }
  };
  return (
    <Alert variant="warning" isInline isPlain={isShort} title={words.title} className="burano-breaks burano-spaced">
      <List isPlain>
        {of.missing.map((one, i) => (
          <ListItem key={i}>
            {sentence(one)} {words.mends(one.mends.map((role) => words.roles[role]).join(words.or))}
          </ListItem>
        ))}
      </List>
    </Alert>
  );
}
