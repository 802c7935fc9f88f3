import { Content } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';

import type { Schema } from '../api/client';
import { environmentQuery } from '../environments/environments';
import { inNames } from '../environments/objects';

interface Props {
  environment: string;
  /** The draft with the faults; undefined for the deployed model. */
  session?: string;
  problems: Schema<'Problem'>[];
}

/** The faults of a draft, each with its place by the names of objects. */
export function Problems({ environment, session, problems }: Props) {
  const model = useQuery({ ...environmentQuery(environment, session), enabled: problems.length > 0 }).data;
  if (problems.length === 0) return null;
  return (
    <Content component="ul">
      {problems.map((problem, i) => (
        <Content component="li" key={i} className="burano-breaks">
          <span title={problem.path}>{inNames(problem.path ?? '', model)}</span>: {problem.message}
        </Content>
      ))}
    </Content>
  );
}
