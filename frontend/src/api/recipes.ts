import { call } from './client'
import type { Recipe } from './types.gen'
import type { RecipeSource } from '@/lib/recipe'

/** What a session or a recent launch was asked for, to be kept and launched again. */
export const fetchRecipe = ({ kind, id }: RecipeSource, signal?: AbortSignal): Promise<Recipe> =>
  call(kind === 'session' ? 'session-recipe' : 'recent-recipe', { path: { id }, signal })
