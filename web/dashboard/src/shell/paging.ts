// Lists that the server gives in pages: the address holds the markers of all pages that one has gone through, so that one can go back.

/** The marker of the page that is shown: the last one of the trail. */
export const markerOf = (trail: string | undefined): string | undefined => trail?.split(',').at(-1) || undefined;

export const onward = (trail: string | undefined, next: string): string => (trail ? `${trail},${next}` : next);

/** The trail of the page before; undefined on the second page, whose former is the first. */
export const back = (trail: string): string | undefined => trail.split(',').slice(0, -1).join(',') || undefined;

export const pageNumber = (trail: string | undefined): number => (trail ? trail.split(',').length + 1 : 1);
