package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// anchors names headings as the places do that show Markdown: in small letters, with dashes for spaces, and a number
// after the name where it is taken.
type anchors struct{ used map[string]bool }

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Generate implements parser.IDs.
func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	name := strings.ReplaceAll(strings.ToLower(notInAnchor.ReplaceAllString(string(value), "")), " ", "-")
	free := name
	for n := 1; a.used[free]; n++ {
		free = name + "-" + strconv.Itoa(n)
	}
	a.used[free] = true
	return []byte(free)
}

// Put implements parser.IDs.
func (a *anchors) Put(value []byte) { a.used[string(value)] = true }
