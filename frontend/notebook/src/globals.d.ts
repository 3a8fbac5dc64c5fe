/** The folder of Python beside the page; see vite.config.ts. */
declare const __PYTHON__: string
