// Command site writes the documentation as static pages into a directory, which it empties first. The pages need no
// script and no network. It fails if a link leads nowhere.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed page.tmpl
var pageText string

//go:embed docs.css
var style []byte

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// contents is the file whose links name all pages, in their order. It becomes the first page.
const contents = "README.md"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: site DIR")
		os.Exit(2)
	}
	if err := write(filepath.Join("build", "docs"), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write makes the pages of the documents in from.
func write(from, to string) error {
	s, err := read(from)
	if err != nil {
		return err
	}
	pages, err := s.pages()
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return err
	}
	pages["docs.css"] = style
	for name, data := range pages {
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return err
		}
	}
	return os.CopyFS(filepath.Join(to, "pictures"), os.DirFS(filepath.Join(from, "pictures")))
}

// site is all documents.
type site struct {
	markdown goldmark.Markdown
	groups   []group // as the contents list them
	all      map[string]*document
}

type group struct {
	Title     string
	Documents []*document
}

// document is one page.
type document struct {
	Title string
	Page  string // its file name
	tree  ast.Node
	text  []byte
}

// read reads the contents and each document that they link to.
func read(from string) (*site, error) {
	s := &site{all: map[string]*document{}, markdown: goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))}
	first, err := s.load(from, contents, "index.html")
	if err != nil {
		return nil, err
	}
	err = ast.Walk(first.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				s.groups = append(s.groups, group{Title: words(n, first.text)})
			}
		case *ast.Link:
			to := string(n.Destination)
			d, err := s.load(from, to, strings.ToLower(strings.TrimSuffix(filepath.Base(to), ".md"))+".html")
			if err != nil {
				return ast.WalkStop, err
			}
			last := &s.groups[len(s.groups)-1]
			last.Documents = append(last.Documents, d)
		}
		return ast.WalkContinue, nil
	})
	return s, err
}

func (s *site) load(from, name, page string) (*document, error) {
	data, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	d := &document{Page: page, text: data, tree: s.markdown.Parser().Parse(text.NewReader(data),
		parser.WithContext(parser.NewContext(parser.WithIDs(&anchors{used: map[string]bool{}}))))}
	for n := d.tree.FirstChild(); n != nil && d.Title == ""; n = n.NextSibling() {
		if title, is := n.(*ast.Heading); is {
			d.Title = words(title, data)
		}
	}
	s.all[filepath.Base(name)] = d
	return d, nil
}

// pages returns the files of the site by their names.
func (s *site) pages() (map[string][]byte, error) {
	pages := map[string][]byte{}
	for name, d := range s.all {
		if err := s.link(d); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var body, page bytes.Buffer
		if err := s.markdown.Renderer().Render(&body, d.text, d.tree); err != nil {
			return nil, err
		}
		err := pageTemplate.Execute(&page, map[string]any{"Groups": s.groups, "This": d,
			"Body": template.HTML(body.String())}) //nolint:gosec // the project's own text, without raw HTML
		if err != nil {
			return nil, err
		}
		pages[d.Page] = page.Bytes()
	}
	return pages, nil
}

// link turns the links of a document to others into links to their pages.
func (s *site) link(d *document) error {
	return ast.Walk(d.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, is := n.(*ast.Link)
		if !is || !entering || bytes.Contains(link.Destination, []byte("://")) {
			return ast.WalkContinue, nil
		}
		file, anchor, named := strings.Cut(string(link.Destination), "#")
		target := d
		if file != "" {
			if target = s.all[filepath.Base(file)]; target == nil {
				return ast.WalkStop, fmt.Errorf("%s is no page of the documentation", link.Destination)
			}
		}
		if named && !target.has(anchor) {
			return ast.WalkStop, fmt.Errorf("%s names no heading", link.Destination)
		}
		to := target.Page
		if named {
			to += "#" + anchor
		}
		link.Destination = []byte(to)
		return ast.WalkContinue, nil
	})
}

// has reports whether a heading of the document has that anchor.
func (d *document) has(anchor string) bool {
	for n := d.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if id, ok := n.AttributeString("id"); ok && n.Kind() == ast.KindHeading && string(id.([]byte)) == anchor {
			return true
		}
	}
	return false
}

// words is the plain text of a node.
func words(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, is := c.(*ast.Text); is {
			b.Write(t.Segment.Value(source))
			continue
		}
		b.WriteString(words(c, source))
	}
	return b.String()
}
