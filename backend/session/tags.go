package session

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the tags of one session.
const (
	MaxTags = 20
	MaxTag  = 32 // characters of one
)

// CleanTags returns tags as they are kept: without blanks around them, sorted,
// each once. It fails with session_update_invalid for more than [MaxTags], and for
// one that is empty, longer than [MaxTag], or holds a comma or what does not print.
func CleanTags(tags []string) ([]string, error) {
	clean := make([]string, 0, len(tags))
	for _, tag := range tags {
		tag = strings.TrimSpace(tag)
		if tag == "" || utf8.RuneCountInString(tag) > MaxTag ||
			strings.ContainsFunc(tag, func(r rune) bool { return r == ',' || !unicode.IsPrint(r) }) {
			return nil, tagFault(fmt.Sprintf("%q is not a tag.", Clip(tag)),
				fmt.Sprintf("A tag has 1 to %d characters that can be printed, without commas.", MaxTag))
		}
		clean = append(clean, tag)
	}
	slices.Sort(clean)
	if clean = slices.Compact(clean); len(clean) > MaxTags {
		return nil, tagFault(fmt.Sprintf("%d tags are too many; a session has at most %d.", len(clean), MaxTags),
			"Remove some of them.")
	}
	return clean, nil
}

func tagFault(message, hint string) error {
	return &Error{Code: CodeSessionInvalid, Message: message, Hint: hint,
		Fields: []FieldError{{Field: "tags", Kind: KindInvalid, Message: message, Hint: hint}}}
}
