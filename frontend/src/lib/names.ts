import { messageText, type Phrase } from './phrases'

/** The rule for the names of one kind of thing. One of api/rules.gen fits. */
interface NameRule {
  min: number
  max: number
  parts: readonly { pattern: RegExp; not: boolean; say: string }[]
}

/** What is wrong with a name, in the language of the page; empty where the rule allows it. */
export function nameFault(rule: NameRule, name: string): string {
  const fault = faultOf(rule, name)
  return fault ? messageText({ said: [fault] }) : ''
}

function faultOf({ min, max, parts }: NameRule, name: string): Phrase | undefined {
  const length = [...name].length
  if (length < min) return { say: 'nameShort', count: min }
  if (length > max) return { say: 'nameLong', count: max }
  const broken = parts.find(({ pattern, not }) => pattern.test(name) === not)
  return broken && { say: broken.say, with: [{ hole: 'name', text: name }] }
}
