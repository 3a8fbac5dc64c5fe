package main

import (
	"maps"
	"slices"
	"strings"
)

// known is a code with every sentence that the source has for it, by hint.
type known struct {
	code      string
	sentences map[string][]string
}

// blank is what is left of a text of which nothing is known.
const blank = changing + ": ."

func (k *known) add(message, hint string) {
	if strings.Trim(message, blank) == "" {
		message = ""
	}
	if strings.Trim(hint, blank) == "" {
		hint = ""
	}
	if !slices.Contains(k.sentences[hint], message) {
		k.sentences[hint] = append(k.sentences[hint], message)
	}
}

// row is one of the table: codes that say the same and have the same hint.
type row struct {
	codes      []string
	says, hint string
}

// unsaid stands where the text is that of whatever failed.
const unsaid = "What is wrong, in the words of what failed."

// rowsOf puts codes of one domain that say the same into one row.
func rowsOf(found []*known) []row {
	var rows []row
	for _, k := range found {
		said := len(k.sentences) > 1 || len(k.sentences[""]) != 1 || k.sentences[""][0] != ""
		for _, hint := range slices.Sorted(maps.Keys(k.sentences)) {
			messages := slices.DeleteFunc(slices.Sorted(slices.Values(k.sentences[hint])),
				func(message string) bool { return message == "" })
			if len(messages) == 0 && hint == "" && said {
				continue
			}
			one := row{codes: []string{k.code}, says: fold(messages), hint: hint}
			if one.says == "" {
				one.says = unsaid
			}
			if same := slices.IndexFunc(rows, one.joins); same >= 0 {
				rows[same].codes = append(rows[same].codes, k.code)
				continue
			}
			rows = append(rows, one)
		}
	}
	return rows
}

func (r row) joins(other row) bool {
	domain, _, _ := strings.Cut(r.codes[0], "_")
	return strings.HasPrefix(other.codes[0], domain+"_") && r.says == other.says && r.hint == other.hint
}

// fold is what many sentences say: all of them, or their common beginning
// where they differ in one thing, or the first of very many.
func fold(messages []string) string {
	const few, many, long = 4, 10, 20
	if len(messages) < few {
		return strings.Join(messages, " / ")
	}
	first, last := messages[0], messages[len(messages)-1]
	same := 0
	for same < min(len(first), len(last)) && first[same] == last[same] {
		same++
	}
	if same = strings.LastIndex(first[:same], " ") + 1; same >= long {
		return first[:same] + changing + "."
	}
	if len(messages) > many {
		messages = append(messages[:many:many], "and others like them.")
	}
	return strings.Join(messages, " / ")
}
