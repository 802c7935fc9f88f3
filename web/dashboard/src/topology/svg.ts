// A topology as a picture of its own.

/** What the page's style sheets say of shapes and texts, as attributes: the picture has no style sheets. */
const looks = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-family', 'font-size', 'font-weight', 'text-anchor', 'visibility', 'display'];

/** A copy of what an SVG shows, all of it, whatever is in sight, as a document. */
export function asDocument(surface: SVGSVGElement): string {
  const copy = surface.cloneNode(true) as SVGSVGElement;
  const originals = surface.querySelectorAll<SVGElement>('*');
  copy.querySelectorAll<SVGElement>('*').forEach((element, i) => {
    const original = originals[i];
    if (!original) return;
    const style = getComputedStyle(original);
    for (const look of looks) {
      const value = style.getPropertyValue(look);
      if (value) element.setAttribute(look, value);
    }
    element.removeAttribute('class');
  });
  const graph = surface.querySelector<SVGGElement>('[data-kind="graph"] > g[transform], g[transform]');
  const drawn = copy.querySelector<SVGGElement>('[data-kind="graph"] > g[transform], g[transform]');
  if (graph && drawn) {
    drawn.removeAttribute('transform');
    const { x, y, width, height } = graph.getBBox();
    const margin = 20;
    copy.setAttribute('viewBox', [x - margin, y - margin, width + 2 * margin, height + 2 * margin].map(Math.round).join(' '));
    copy.setAttribute('width', String(Math.round(width + 2 * margin)));
    copy.setAttribute('height', String(Math.round(height + 2 * margin)));
  }
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.removeAttribute('class');
  return new XMLSerializer().serializeToString(copy);
}
