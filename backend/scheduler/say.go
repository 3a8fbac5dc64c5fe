package scheduler

import (
	"strconv"
	"strings"

	"slipway/backend/session"
)

// count is a phrase about so many.
func count(key string, n int, holes ...session.Phrase) session.Phrase {
	return session.Phrase{Say: key, Count: n, With: holes}
}

// as is a phrase that fills a hole.
func as(hole string, p session.Phrase) session.Phrase {
	p.Hole = hole
	return p
}

// plain is a name or an amount: the same in every language.
func plain(text string) session.Phrase { return session.Phrase{Text: text} }

func number(n int) session.Phrase { return plain(strconv.Itoa(n)) }

// list is some phrases with join between them.
func list(join string, pieces []session.Phrase) session.Phrase {
	return session.Phrase{Text: join, With: pieces}
}

// sentence is a phrase, alone in a list that many reasons share, and its English.
type sentence struct {
	said []session.Phrase
	text string
}

func spoken(p session.Phrase) sentence { return sentence{[]session.Phrase{p}, p.English()} }

// waitFor is a wait for what some sentences say.
func waitFor(code session.Code, sentences ...sentence) session.Wait {
	if len(sentences) == 1 {
		return session.Wait{Code: code, Message: sentences[0].text, Said: sentences[0].said}
	}
	var message strings.Builder
	size := len(sentences)
	for _, s := range sentences {
		size += len(s.text)
	}
	message.Grow(size)
	said := make([]session.Phrase, 0, len(sentences))
	for i, s := range sentences {
		if i > 0 {
			message.WriteByte(' ')
		}
		message.WriteString(s.text)
		said = append(said, s.said...)
	}
	return session.Wait{Code: code, Message: message.String(), Said: said}
}
