import { Content } from '@patternfly/react-core';

/** Further effects of an operation, and their cost: sentences of the server. */
export function Means({ means }: { means: string[] }) {
  if (means.length === 0) return null;
  return (
    <Content component="ul">
      {means.map((one) => (
        <Content component="li" key={one} className="burano-breaks">
          {one}
        </Content>
      ))}
    </Content>
  );
}
