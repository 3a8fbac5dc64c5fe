const RULES = [
  /AUTH|ACCESS|SECRET|KEY|PASSWORD|PASSWD|PWD|TOKEN|PRIVATE|CREDENTIAL|JWT|CERTIFICATE|SSH|ENCRYPT|SIGNATURE|SALT/i,
  /PASSPHRASE|PASS$|_PW$|(^|_)PIN(_|$)/i,
]

/** What the server writes in place of a secret's value. */
export const MASK = '••••••'

/** Whether a variable's name says that its value is nobody else's business: the rule of the control plane. */
export function looksSecret(name: string): boolean {
  return RULES.some((rule) => rule.test(name))
}

/** Whether a value is only the place of a secret. */
export function isMasked(value: string): boolean {
  return value === MASK
}
