import { Content } from '@patternfly/react-core';

import type { Schema } from '../api/client';

/** The faults of a draft, each with its place. */
export function Problems({ problems }: { problems: Schema<'Problem'>[] }) {
  if (problems.length === 0) return null;
  return (
    <Content component="ul">
      {problems.map((problem, i) => (
        <Content component="li" key={i} className="burano-breaks">
          {problem.path}: {problem.message}
        </Content>
      ))}
    </Content>
  );
}
