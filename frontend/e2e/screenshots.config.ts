import config from './vitest.config'

// Makes the pictures of the documentation; build/ci/screenshots.sh runs it.
export default { ...config, test: { ...config.test, projects: undefined, include: ['screenshots.shots.ts'] } }
