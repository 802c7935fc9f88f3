export const topology = {
  title: 'Topology',
  none: 'Nothing to draw yet',
  noneWhat: 'Add applications and deploy them: what they are made of is drawn here.',
  legend:
    'Solid lines lead to what an object holds, dashed arrows to what it refers to. A sign at its corner says how an object is; one without a sign is not watched or not there yet.',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  fit: 'Show all of it',
  reset: 'Original size',
  save: 'Save as SVG',
  objects: 'Objects',
  find: 'Find an object',
  noMatch: 'No object matches. Show all',
  open: 'Open its page',
  openOwner: 'Open what it leads to',
  kinds: { application: 'Application', server: 'Server', network: 'Network', volume: 'Volume', address: 'Floating address', part: 'Part' },
  states: { ok: 'is well', changing: 'is being changed', warning: 'has warnings', failed: 'has failed', waiting: 'is not there yet', none: '' },
};
