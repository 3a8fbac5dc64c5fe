/** The documentation, which is part of the program. */
export const docsAddress = '/docs/index.html'
