export const topology = {
  title: 'Topology',
  none: 'Nothing to draw yet',
  noneWhat: 'Add applications and deploy them: their parts are drawn here.',
  legend:
    'Solid lines lead to the parts of an object, dashed arrows to the objects that it refers to. The icon at its corner shows its health; an object without an icon is not watched, or not deployed yet.',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  fit: 'Show all of it',
  reset: 'Original size',
  save: 'Save as SVG',
  objects: 'Objects',
  find: 'Find an object',
  noMatch: 'No object matches. Show all',
  open: 'Open its page',
  openOwner: 'Open its component',
  kinds: { application: 'Application', server: 'Server', network: 'Network', volume: 'Volume', address: 'Floating address', part: 'Part' },
  states: { ok: 'healthy', changing: 'changing', warning: 'has warnings', failed: 'failed', waiting: 'not deployed yet', none: '' },
};
