/** Whose templates the list's address asks for: those of the own project, or public ones. */
export const whose = ['own', 'public'] as const;
export type Whose = (typeof whose)[number];
