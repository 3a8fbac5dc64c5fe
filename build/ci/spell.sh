#!/usr/bin/env bash
# Looks for misspelt words in the documents that people write and in the English texts of the interface. Names and
# words of the field that the dictionary lacks are in words.txt. Code is not looked at.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v hunspell >/dev/null || { echo "slipway: hunspell is missing; build/ci/setup.sh test installs it" >&2; exit 1; }
documents=(README.md SECURITY.md CONTRIBUTING.md)
for one in build/docs/*.md; do
  case "$one" in
    */api.md | */cli.md | */errors.md | */settings.md) ;; # written by docgen
    *) documents+=("$one") ;;
  esac
done
unknown=$({
  sed -E 's/`[^`]*`/ /g; s/\]\([^)]*\)//g; /^(    |\t)/d' "${documents[@]}"
  # The texts are what stands after a colon.
  sed -E 's/\{\{[^}]*\}\}|<\/?[a-z]+>|"[A-Za-z0-9_-]+" *://g' frontend/src/i18n/en/*.json
} | hunspell -d en_US -p build/ci/words.txt -l | sort -u)
[ -z "$unknown" ] || {
  echo "slipway: mend these words, or add them to build/ci/words.txt:" $unknown >&2
  exit 1
}
