/** The templates that the list's address asks for: the own project's, or public ones. */
export const whose = ['own', 'public'] as const;
export type Whose = (typeof whose)[number];
