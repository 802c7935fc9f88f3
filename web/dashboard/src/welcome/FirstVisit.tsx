import { Alert, AlertActionCloseButton, List, ListItem } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';

import { environmentsQuery } from '../environments/environments';
import { useSession } from '../session/session';
import { useFirstText } from '../text';

/** Shows the first steps to users without environments; once closed it stays away from that project. */
export function FirstVisit() {
  const words = useFirstText().welcome;
  const project = useSession().project?.id ?? '';
  const remembered = `burano.welcomed.${project}`;
  const [closed, setClosed] = useState(() => localStorage.getItem(remembered) !== null);
  const environments = useQuery({ ...environmentsQuery, enabled: !closed });
  if (closed || environments.data?.length !== 0) return null;
  const close = () => {
    localStorage.setItem(remembered, 'yes');
    setClosed(true);
  };
  return (
    <Alert isInline variant="info" component="h2" title={words.title} actionClose={<AlertActionCloseButton aria-label={words.close} onClose={close} />} className="burano-welcome">
      <List component="ol">
        <ListItem>
          {words.package} <Link to="/packages">{words.toPackages}</Link>
        </ListItem>
        <ListItem>
          {words.environment} <Link to="/environments">{words.toEnvironments}</Link>
        </ListItem>
        <ListItem>
          {words.application} <Link to="/catalog">{words.toCatalog}</Link>
        </ListItem>
        <ListItem>
          {words.deploy}{' '}
          <Link to="/help/$page" params={{ page: 'dashboard' }}>
            {words.toHelp}
          </Link>
        </ListItem>
      </List>
    </Alert>
  );
}
