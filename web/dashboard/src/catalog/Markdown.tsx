import { Content } from '@patternfly/react-core';
import Renderer from 'react-markdown';

/**
 * Shows a package author's text. HTML in it is shown as text, and pictures, which would be requested from other
 * hosts, are left out.
 */
export default function Markdown({ text }: { text: string }) {
  return (
    <Content className="burano-breaks">
      <Renderer
        disallowedElements={['img']}
        components={{
          h1: (props) => <h3>{props.children}</h3>,
          h2: (props) => <h4>{props.children}</h4>,
          // The renderer removes addresses that are no pages': the rest is no link.
          a: (props) =>
            props.href ? (
              <a href={props.href} target="_blank" rel="noreferrer">
                {props.children}
              </a>
            ) : (
              <>{props.children}</>
            ),
        }}
      >
        {text}
      </Renderer>
    </Content>
  );
}
