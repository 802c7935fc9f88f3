// Where the nodes of a topology are: what holds others stands above them, and what belongs to one component lies together.
import type { GraphNode } from './graph';

export interface Place {
  x: number;
  y: number;
}

/** The room that a node takes with its name. */
export const cell = { width: 150, height: 110 };

/** The room between groups, which have a border. */
const gap = 70;

interface Box {
  width: number;
  height: number;
  /** Places within the box, of the middles of nodes. */
  places: Map<string, Place>;
}

/** Gives each node the place of its middle. Nothing lies on anything else, and the whole is about as wide as a screen is. */
export function layout(nodes: GraphNode[]): Map<string, Place> {
  const children = new Map<string, GraphNode[]>();
  const ids = new Set(nodes.map((node) => node.id));
  const roots: GraphNode[] = [];
  for (const node of nodes) {
    if (!ids.has(node.owner)) roots.push(node);
    else children.set(node.owner, [...(children.get(node.owner) ?? []), node]);
  }
  const boxes = roots.map((root) => tree(root, children));
  return shelves(boxes, gap).places;
}

/** A node above all that it holds. */
function tree(node: GraphNode, children: Map<string, GraphNode[]>): Box {
  const below = (children.get(node.id) ?? []).map((child) => tree(child, children));
  const inner = shelves(below, 0, 3);
  const width = Math.max(inner.width, cell.width);
  const places = new Map([[node.id, { x: width / 2, y: cell.height / 2 }]]);
  const left = (width - inner.width) / 2;
  for (const [id, place] of inner.places) places.set(id, { x: place.x + left, y: place.y + cell.height });
  return { width, height: cell.height + inner.height, places };
}

/** Boxes side by side in rows, in their order, so that the whole is less than twice as wide as high; a few lie in one row all the same. */
function shelves(boxes: Box[], between: number, few = 0): Box {
  const area = boxes.reduce((sum, box) => sum + (box.width + between) * (box.height + between), 0);
  const most = boxes.length <= few ? Infinity : Math.max(...boxes.map((box) => box.width), Math.sqrt(area * 1.8));
  const whole: Box = { width: 0, height: 0, places: new Map() };
  let x = 0;
  let y = 0;
  let row = 0;
  for (const box of boxes) {
    if (x > 0 && x + box.width > most) {
      x = 0;
      y += row + between;
      row = 0;
    }
    for (const [id, place] of box.places) whole.places.set(id, { x: x + place.x, y: y + place.y });
    x += box.width + between;
    row = Math.max(row, box.height);
    whole.width = Math.max(whole.width, x - between);
  }
  whole.height = boxes.length > 0 ? y + row : 0;
  return whole;
}
