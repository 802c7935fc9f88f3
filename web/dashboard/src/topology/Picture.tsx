import {
  action,
  createTopologyControlButtons,
  defaultControlButtonsOptions,
  EdgeStyle,
  EdgeTerminalType,
  GraphComponent,
  LabelPosition,
  ModelKind,
  NodeShape,
  NodeStatus,
  SELECTION_EVENT,
  TopologyControlBar,
  TopologyView,
  Visualization,
  VisualizationProvider,
  VisualizationSurface,
  withPanZoom,
  withSelection,
  type ComponentFactory,
  type Controller,
  type EdgeModel,
  type Model,
  type NodeModel,
} from '@patternfly/react-topology';
import { DownloadIcon } from '@patternfly/react-icons';
import { useEffect, useMemo, useRef, useState } from 'react';

import { download } from '../api/download';
import { useText } from '../text';
import type { Kind, NodeState, Topology } from './graph';
import { layout } from './layout';
import { Group, Line, ObjectNode } from './parts';
import { asDocument } from './svg';

const shapes: Record<Kind, NodeShape> = {
  application: NodeShape.rect,
  server: NodeShape.hexagon,
  network: NodeShape.stadium,
  volume: NodeShape.trapezoid,
  address: NodeShape.rhombus,
  part: NodeShape.ellipse,
};

const statuses: Record<NodeState, NodeStatus> = {
  ok: NodeStatus.success,
  changing: NodeStatus.info,
  warning: NodeStatus.warning,
  failed: NodeStatus.danger,
  waiting: NodeStatus.default,
  none: NodeStatus.default,
};

const Surface = withPanZoom()(GraphComponent);
const SelectableNode = withSelection()(ObjectNode);

const parts: ComponentFactory = (kind, type) => {
  if (kind === ModelKind.graph) return Surface;
  if (kind === ModelKind.edge) return Line;
  return type === 'group' ? Group : SelectableNode;
};

/** How large a node is drawn. */
const size = 46;

/** The free space beside all nodes, on both sides together: as much as names extend beyond their nodes. */
const margin = 120;

/** A topology as the visualization takes it. */
function modelOf({ nodes, edges }: Topology): Model {
  const places = layout(nodes);
  const inGroup = new Map<string, string[]>();
  for (const node of nodes) if (node.group) inGroup.set(node.group, [...(inGroup.get(node.group) ?? []), node.id]);
  const names = new Map(nodes.map((node) => [node.id, node.name]));
  const groups = [...inGroup].filter(([, children]) => children.length > 1);
  return {
    graph: { id: 'topology', type: 'graph' },
    nodes: [
      ...nodes.map((node): NodeModel => {
        const place = places.get(node.id) ?? { x: 0, y: 0 };
        return {
          id: node.id,
          type: 'object',
          label: node.name,
          x: place.x - size / 2,
          y: place.y - size / 2,
          width: size,
          height: size,
          shape: shapes[node.kind],
          status: statuses[node.state],
          labelPosition: LabelPosition.bottom,
          data: { kind: node.kind, state: node.state },
        };
      }),
      ...groups.map(([id, children]): NodeModel => ({
        id: `group ${id}`,
        type: 'group',
        group: true,
        label: names.get(id) ?? '',
        children,
        style: { padding: [20, 45, 40, 45] },
      })),
    ],
    edges: edges.map(
      (edge): EdgeModel => ({
        id: edge.id,
        type: edge.kind,
        source: edge.source,
        target: edge.target,
        edgeStyle: edge.kind === 'owns' ? EdgeStyle.solid : EdgeStyle.dashed,
        data: { terminal: edge.kind === 'owns' ? EdgeTerminalType.none : EdgeTerminalType.directional },
      }),
    ),
  };
}

interface Props {
  topology: Topology;
  /** The id of the chosen object; '' for none. */
  chosen: string;
  onChoose: (id: string) => void;
  /** The name of the file that an export becomes. */
  file: string;
}

/** Draws a topology, which can be moved, zoomed, and saved as a picture. */
export function Picture({ topology, chosen, onChoose, file }: Props) {
  const text = useText().topology;
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const [controller] = useState<Controller>(() => {
    const made = new Visualization();
    made.registerComponentFactory(parts);
    return made;
  });
  const listener = useRef(onChoose);
  useEffect(() => {
    listener.current = onChoose;
  }, [onChoose]);
  useEffect(() => {
    const chooses = (ids: string[]) => listener.current(ids[0] ?? '');
    controller.addEventListener(SELECTION_EVENT, chooses);
    return () => {
      controller.removeEventListener(SELECTION_EVENT, chooses);
    };
  }, [controller]);
  const model = useMemo(() => modelOf(topology), [topology]);
  const drawn = useRef(false);
  useEffect(() => {
    controller.fromModel(model, drawn.current);
    if (drawn.current) return;
    drawn.current = true;
    // The surface learns its size when it is first painted.
    const frame = window.setTimeout(action(() => controller.getGraph().fit(margin)), 150);
    return () => {
      window.clearTimeout(frame);
      drawn.current = false;
    };
  }, [controller, model]);
  useEffect(() => {
    action(() => {
      controller.setState({ selectedIds: chosen ? [chosen] : [] });
      const node = chosen ? controller.getNodeById(chosen) : undefined;
      if (node) controller.getGraph().panIntoView(node, { offset: 60, minimumVisible: 100 });
    })();
  }, [controller, chosen]);
  const save = () => {
    const surface = box?.querySelector<SVGSVGElement>('[data-test-id="topology"] > svg');
    if (surface) download(file, asDocument(surface), 'image/svg+xml');
  };
  return (
    <div className="burano-topology" ref={setBox}>
      <TopologyView
        controlBar={
          <TopologyControlBar
            controlButtons={createTopologyControlButtons({
              ...defaultControlButtonsOptions,
              zoomInTip: text.zoomIn,
              zoomInAriaLabel: text.zoomIn,
              zoomInCallback: action(() => controller.getGraph().scaleBy(4 / 3)),
              zoomOutTip: text.zoomOut,
              zoomOutAriaLabel: text.zoomOut,
              zoomOutCallback: action(() => controller.getGraph().scaleBy(3 / 4)),
              fitToScreenTip: text.fit,
              fitToScreenAriaLabel: text.fit,
              fitToScreenCallback: action(() => controller.getGraph().fit(margin)),
              resetViewTip: text.reset,
              resetViewAriaLabel: text.reset,
              resetViewCallback: action(() => controller.getGraph().reset()),
              legend: false,
              customButtons: [{ id: 'save', icon: <DownloadIcon />, tooltip: text.save, ariaLabel: text.save, callback: save }],
            })}
          />
        }
      >
        <VisualizationProvider controller={controller}>
          <VisualizationSurface />
        </VisualizationProvider>
      </TopologyView>
    </div>
  );
}
