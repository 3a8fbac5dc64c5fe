/** The folder of a path; empty: the session's home. */
export const dirOf = (path: string): string => path.split('/').slice(0, -1).join('/')
