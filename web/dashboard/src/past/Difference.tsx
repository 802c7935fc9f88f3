import { Content, Skeleton } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';

import type { Schema } from '../api/client';
import { Changes } from '../draft/Changes';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { differenceQuery } from './past';

/** The difference between two states of an environment. */
export function Difference({ environment, from, to }: { environment: string; from: number; to: number }) {
  const text = useText();
  const words = text.past;
  const difference = useQuery(differenceQuery(environment, from, to));
  if (difference.error) return <Failure error={difference.error} onRetry={() => void difference.refetch()} />;
  if (!difference.data) return <Skeleton height="2rem" screenreaderText={text.shell.loading} />;
  const { changes, packages, images } = difference.data;
  if (changes.length + packages.length + images.length === 0) return <Content component="p">{words.same}</Content>;
  return (
    <>
      {changes.length > 0 && <Changes environment={environment} changes={changes} />}
      <Parts title={words.packages} parts={packages} />
      <Parts title={words.images} parts={images} />
    </>
  );
}

function Parts({ title, parts }: { title: string; parts: Schema<'PartChange'>[] }) {
  const words = useText().draft;
  if (parts.length === 0) return null;
  return (
    <>
      <Content component="p">{title}</Content>
      <Content component="ul">
        {parts.map((part) => (
          <Content component="li" key={part.name} className="burano-breaks">
            {part.name}: <del className="burano-value">{part.before || words.noValue}</del> → <ins className="burano-value">{part.after || words.noValue}</ins>
          </Content>
        ))}
      </Content>
    </>
  );
}
