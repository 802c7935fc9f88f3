import {
  ClipboardCopy,
  EmptyState,
  EmptyStateBody,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Label,
  PageSection,
  TextInput,
  Title,
} from '@patternfly/react-core';
import { ServerIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { showBytes } from '../api/bytes';
import { useRegion } from '../regions/regions';
import { useSession } from '../session/session';
import { Heading } from '../shell/Heading';
import { Loaded } from '../shell/Loaded';
import { useLanguage } from '../text';
import { MarkButtons } from './MarkButtons';
import { imagesQuery, imageTypes, markCommand, unmarkCommand } from './images';

/** Images that applications can start their servers from, and how to mark one so that forms find it. */
export function ImagesPage() {
  const { text, language } = useLanguage();
  const words = text.images;
  const { region } = useRegion();
  const images = useQuery(imagesQuery(region));
  const admin = useSession().admin && region === ''; // images are marked in Burano's own region
  return (
    <>
      <Heading title={words.title} what={words.what} help="node-image" />
      <PageSection>
        <Loaded query={images}>
          {(list) =>
            list.length === 0 ? (
              <EmptyState titleText={words.none} icon={ServerIcon} headingLevel="h2" variant="sm">
                <EmptyStateBody>{words.noneWhat}</EmptyStateBody>
              </EmptyState>
            ) : (
              <Table aria-label={words.title} variant="compact" gridBreakPoint="grid-lg">
                <Thead>
                  <Tr>
                    <Th>{words.name}</Th>
                    <Th>{words.titleOf}</Th>
                    <Th>{words.type}</Th>
                    <Th>{words.size}</Th>
                    <Th>{words.least}</Th>
                    {admin && <Th screenReaderText={words.mark} />}
                  </Tr>
                </Thead>
                <Tbody>
                  {list.map((image) => (
                    <Tr key={image.id}>
                      <Td dataLabel={words.name} className="burano-breaks">
                        {image.name}
                      </Td>
                      <Td dataLabel={words.titleOf} className="burano-breaks">
                        {image.title}
                      </Td>
                      <Td dataLabel={words.type}>{image.type ? <Label isCompact>{image.type}</Label> : words.notMarked}</Td>
                      <Td dataLabel={words.size}>{image.size ? showBytes(image.size, language) : ''}</Td>
                      <Td dataLabel={words.least}>{words.leastOf(image.min_disk ?? 0, image.min_ram ?? 0)}</Td>
                      {admin && (
                        <Td>
                          <MarkButtons image={image} />
                        </Td>
                      )}
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )
          }
        </Loaded>
      </PageSection>
      <PageSection isFilled>
        {!admin && <Mark names={(images.data ?? []).map((image) => image.name ?? '')} />}
      </PageSection>
    </>
  );
}

function Mark({ names }: { names: string[] }) {
  const words = useLanguage().text.images;
  const [image, setImage] = useState('');
  const [type, setType] = useState<string>(imageTypes[0]);
  const [title, setTitle] = useState('');
  const named = image || names[0] || words.someImage;
  return (
    <Form>
      <Title headingLevel="h2">{words.mark}</Title>
      <p>{words.markWhat}</p>
      <FormGroup label={words.image} fieldId="mark-image">
        {names.length > 0 ? (
          <FormSelect id="mark-image" value={named} onChange={(_event, value) => setImage(value)}>
            {names.map((name) => (
              <FormSelectOption key={name} value={name} label={name} />
            ))}
          </FormSelect>
        ) : (
          <TextInput id="mark-image" value={image} onChange={(_event, value) => setImage(value)} />
        )}
      </FormGroup>
      <FormGroup label={words.type} fieldId="mark-type">
        <TextInput id="mark-type" list="mark-types" value={type} onChange={(_event, value) => setType(value)} />
        <datalist id="mark-types">
          {imageTypes.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      </FormGroup>
      <FormGroup label={words.titleOf} fieldId="mark-title">
        <TextInput id="mark-title" value={title} onChange={(_event, value) => setTitle(value)} />
      </FormGroup>
      <FormGroup label={words.command}>
        <ClipboardCopy isReadOnly isCode variant="expansion" isExpanded hoverTip={words.copy} clickTip={words.copied} textAriaLabel={words.command}>
          {markCommand(named, type, title || named)}
        </ClipboardCopy>
      </FormGroup>
      <FormGroup label={words.unmark}>
        <ClipboardCopy isReadOnly isCode hoverTip={words.copy} clickTip={words.copied} textAriaLabel={words.unmark}>
          {unmarkCommand(named)}
        </ClipboardCopy>
      </FormGroup>
    </Form>
  );
}
