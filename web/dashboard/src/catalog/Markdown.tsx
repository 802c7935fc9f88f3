import { Content } from '@patternfly/react-core';
import Renderer from 'react-markdown';

/** Shows what a package's author wrote. HTML in it is shown as text, and pictures, which would be asked of other hosts, are left out. */
export default function Markdown({ text }: { text: string }) {
  return (
    <Content className="burano-breaks">
      <Renderer
        disallowedElements={['img']}
        components={{
          h1: (props) => <h3>{props.children}</h3>,
          h2: (props) => <h4>{props.children}</h4>,
          // The renderer takes away addresses that are none of pages: what is left is no link.
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
