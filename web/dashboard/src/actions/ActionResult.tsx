import { Alert, Button, CodeBlock, CodeBlockAction, CodeBlockCode, Content, ExpandableSection, Skeleton } from '@patternfly/react-core';
import { CheckIcon, CopyIcon, DownloadIcon } from '@patternfly/react-icons';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { download, fromBase64 } from '../api/download';
import { Failure } from '../shell/Failure';
import { useText } from '../text';
import { resultQuery, shownOf } from './actions';

/** The result of an action that has ended. */
export function ActionResult({ environment, task }: { environment: string; task: string }) {
  const text = useText();
  const words = text.actions;
  const result = useQuery(resultQuery(environment, task));
  if (result.error) return <Failure error={result.error} onRetry={() => void result.refetch()} />;
  const shown = shownOf(result.data);
  switch (shown.kind) {
    case 'running':
      return <Skeleton height="4rem" screenreaderText={text.shell.loading} />;
    case 'failure':
      return (
        <Alert variant="danger" isInline title={words.failed}>
          <Content component="p" className="burano-breaks">
            {shown.message}
          </Content>
          {shown.details && shown.details !== shown.message && (
            <ExpandableSection toggleText={words.details}>
              <pre className="burano-code">{shown.details}</pre>
            </ExpandableSection>
          )}
        </Alert>
      );
    case 'nothing':
      return (
        <Alert variant="success" isInline title={words.done}>
          {words.nothing}
        </Alert>
      );
    case 'file':
      return (
        <>
          <Alert variant="success" isInline title={words.done} />
          <Button
            className="burano-spaced"
            variant="secondary"
            icon={<DownloadIcon />}
            onClick={() => download(shown.name, fromBase64(shown.base64), shown.mime)}
          >
            {words.download(shown.name)}
          </Button>
        </>
      );
    case 'text':
      return <Code content={shown.text} file="result.txt" type="text/plain" />;
    case 'json':
      return <Code content={shown.json} file="result.json" type="application/json" />;
  }
}

function Code({ content, file, type }: { content: string; file: string; type: string }) {
  const words = useText().actions;
  const [copied, setCopied] = useState(false);
  return (
    <>
      <Alert variant="success" isInline title={words.done} />
      <CodeBlock
        className="burano-spaced"
        aria-label={words.result}
        actions={
          <>
            <CodeBlockAction>
              <Button
                variant="plain"
                aria-label={words.copy}
                icon={copied ? <CheckIcon /> : <CopyIcon />}
                onClick={() => void navigator.clipboard.writeText(content).then(() => setCopied(true))}
              />
            </CodeBlockAction>
            <CodeBlockAction>
              <Button variant="plain" aria-label={words.saveResult} icon={<DownloadIcon />} onClick={() => download(file, content, type)} />
            </CodeBlockAction>
          </>
        }
      >
        <CodeBlockCode>{content}</CodeBlockCode>
      </CodeBlock>
    </>
  );
}
