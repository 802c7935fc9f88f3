import { CubeIcon, CubesIcon, DatabaseIcon, GlobeIcon, NetworkIcon, ServerIcon } from '@patternfly/react-icons';
import { DefaultEdge, DefaultGroup, DefaultNode, observer, type Edge, type EdgeTerminalType, type GraphElement, type Node, type WithSelectionProps } from '@patternfly/react-topology';
import type { ComponentType } from 'react';

import { useText } from '../text';
import type { Kind, NodeState } from './graph';

const icons: Record<Kind, ComponentType<{ width?: string | number; height?: string | number }>> = {
  application: CubesIcon,
  server: ServerIcon,
  network: NetworkIcon,
  volume: DatabaseIcon,
  address: GlobeIcon,
  part: CubeIcon,
};

/** An object: its kind is its shape and its picture, its state a colour and a sign. */
export const ObjectNode = observer(function ObjectNode({ element, selected, onSelect }: { element: GraphElement } & Partial<WithSelectionProps>) {
  const text = useText().topology;
  const node = element as Node;
  const { kind, state } = node.getData() as { kind: Kind; state: NodeState };
  const { width, height } = node.getDimensions();
  const Icon = icons[kind];
  return (
    <DefaultNode
      element={node}
      selected={selected}
      onSelect={onSelect}
      showStatusDecorator={state !== 'none' && state !== 'waiting'}
      statusDecoratorTooltip={text.states[state]}
      truncateLength={16}
    >
      <title>{`${text.kinds[kind]} ${node.getLabel()}${state === 'none' ? '' : `: ${text.states[state]}`}`}</title>
      <g transform={`translate(${width / 2 - 10}, ${height / 2 - 10})`} aria-hidden>
        <Icon width={20} height={20} />
      </g>
    </DefaultNode>
  );
});

/** What belongs to one component. */
export const Group = observer(function Group({ element }: { element: GraphElement }) {
  return <DefaultGroup element={element} hulledOutline={false} borderRadius={12} />;
});

/** An edge; what is referred to has an arrow. */
export const Line = observer(function Line({ element }: { element: GraphElement }) {
  const edge = element as Edge;
  const { terminal } = edge.getData() as { terminal: EdgeTerminalType };
  return <DefaultEdge element={edge} endTerminalType={terminal} endTerminalSize={8} />;
});
