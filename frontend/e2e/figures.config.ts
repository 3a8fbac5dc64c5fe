import config from './vitest.config'

// Measures in the browser; build/bench runs it.
export default { ...config, test: { ...config.test, projects: undefined, include: ['*.figures.ts'] } }
