import type { Environment, EnvironmentVersion } from './types.gen'

/** The family and version that an image belongs to. */
export function findVersion(
  environments: readonly Environment[],
  image: string,
): { family: Environment; version: EnvironmentVersion } | null {
  const wanted = normalReference(image)
  for (const family of environments) {
    const version = family.versions.find((v) => normalReference(v.image) === wanted)
    if (version) return { family, version }
  }
  return null
}

/** The same reference for every way to write it: with a tag, without the public registry's name. */
export function normalReference(reference: string): string {
  const plain = reference
    .trim()
    .replace(/^(docker\.io|index\.docker\.io)\//, '')
    .replace(/^library\//, '')
  if (plain === '' || plain.includes('@')) return plain
  return /:[^/]*$/.test(plain) ? plain : `${plain}:latest`
}

/** The title of an image's family with that of its version; empty where it is of none. */
export function environmentTitle(environments: readonly Environment[], image: string): string {
  const found = findVersion(environments, image)
  return found ? `${found.family.title} ${found.version.title}` : ''
}

/**
 * The image that is offered first: one with Jupyter, on this computer if there is one, else on any machine, else the
 * first of the catalogue. Without any with Jupyter: the first that is installed, else the first of all.
 */
export function firstChoice(environments: readonly Environment[], local = ''): string {
  const versions = environments
    .filter((family) => family.accelerator !== 'required')
    .flatMap((family) => family.versions)
  const jupyter = versions.filter((version) => version.jupyter)
  const choice =
    jupyter.find((version) => version.agents.includes(local)) ??
    jupyter.find((version) => version.installed) ??
    jupyter[0] ??
    versions.find((version) => version.installed) ??
    versions[0]
  return choice?.image ?? ''
}
