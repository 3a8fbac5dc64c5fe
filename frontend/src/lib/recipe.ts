/** Whose recipe is meant: that of a session, or of an entry of the launch history. */
export interface RecipeSource {
  kind: 'session' | 'recent'
  id: string
}

/** The most that a recipe's file may hold, in bytes: the rule of the control plane. */
export const RECIPE_MOST = 1 << 20

/** Whether a file looks like a recipe by its name. */
export function looksLikeRecipe(name: string): boolean {
  return /\.(ya?ml|json)$/i.test(name)
}
