import { Content } from '@patternfly/react-core';

/** What something does besides, and what that costs: sentences of the server. */
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
