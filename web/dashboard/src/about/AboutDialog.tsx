import { Content, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, Modal, ModalBody, ModalHeader } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';

import { answered, api, send } from '../api/client';
import { Loaded } from '../shell/Loaded';
import { useText } from '../text';

interface Description {
  info: { version: string; license?: { name?: string } };
}

/** The running program, and its licences. */
export function AboutDialog({ onClose }: { onClose: () => void }) {
  const text = useText();
  const words = text.palette;
  const id = useId();
  const description = useQuery({ queryKey: ['description'], queryFn: async () => (await send('/openapi.json', {})).json() as Promise<Description>, staleTime: Infinity });
  const version = useQuery({ queryKey: ['version'], queryFn: () => answered(api.GET('/burano/v1/version')), staleTime: Infinity });
  return (
    <Modal isOpen variant="small" aria-labelledby={`${id}-title`} onClose={onClose}>
      <ModalHeader title={words.about} labelId={`${id}-title`} description={text.session.subtitle} />
      <ModalBody>
        <Loaded query={description}>
          {({ info }) => (
            <DescriptionList isHorizontal>
              {version.data && (
                <DescriptionListGroup>
                  <DescriptionListTerm>{words.version}</DescriptionListTerm>
                  <DescriptionListDescription className="burano-breaks">
                    {version.data.version} <small>{version.data.commit}</small>
                  </DescriptionListDescription>
                </DescriptionListGroup>
              )}
              <DescriptionListGroup>
                <DescriptionListTerm>{words.api}</DescriptionListTerm>
                <DescriptionListDescription>
                  <a href="/openapi.json">{info.version}</a>
                </DescriptionListDescription>
              </DescriptionListGroup>
              <DescriptionListGroup>
                <DescriptionListTerm>{words.licence}</DescriptionListTerm>
                <DescriptionListDescription>{info.license?.name}</DescriptionListDescription>
              </DescriptionListGroup>
            </DescriptionList>
          )}
        </Loaded>
        <Content component="p">
          <a href="/dashboard/licences.txt" target="_blank" rel="noreferrer">
            {words.licences}
          </a>
        </Content>
      </ModalBody>
    </Modal>
  );
}
