const SECRET = /KEY|TOKEN|PASSWORD|PASSWD|SECRET|CREDENTIAL|PASSPHRASE|PASS$|_PW$/i

/** What the server writes in place of a secret's value. */
export const MASK = '••••••'

/** Whether a variable's name says that its value is nobody else's business: the rule of the control plane. */
export function looksSecret(name: string): boolean {
  return SECRET.test(name)
}

/** Whether a value is only the place of a secret. */
export function isMasked(value: string): boolean {
  return value === MASK
}
