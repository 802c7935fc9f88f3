import { Alert, Content } from '@patternfly/react-core';

import type { Schema } from '../api/client';
import { useText } from '../text';

/** A deployment's deletions in the cloud, with all their data. */
export function Losses({ losses }: { losses: Schema<'Loss'>[] }) {
  const words = useText().draft;
  return (
    <Alert variant="warning" isInline isPlain title={words.losses(losses.length)}>
      <Content component="ul">
        {losses.map((loss, i) => (
          <Content component="li" key={i} className="burano-breaks">
            {words.lossKinds[loss.kind]} {loss.object} {loss.cloud_id && loss.cloud_id !== loss.object && <small>{loss.cloud_id}</small>}
          </Content>
        ))}
      </Content>
    </Alert>
  );
}
