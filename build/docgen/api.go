package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"slipway/backend/api"
	"slipway/backend/api/route"
)

const aboutAPI = `The control plane answers on 127.0.0.1 only. All that the page, the command line and the desktop
application do they do by what stands here; [openapi.json](../../backend/api/openapi.json), which a running
control plane serves at ` + "`/api/v1/openapi.json`" + `, says the same to programs.

    home=${SLIPWAY_HOME:-${XDG_DATA_HOME:-$HOME/.local/share}/slipway}
    url=$(sed -n 's/.*"url": *"\([^"]*\)".*/\1/p' "$home/serve.json")
    curl -H "Authorization: Bearer $(cat "$home/token")" "$url/api/v1/sessions?state=live"

**Who may call.** Whoever holds the token, which is a file in Slipway's folder that only its person can read, in
the header ` + "`Authorization: Bearer …`" + `; or a browser with the cookie that the
one-time address of ` + "`slipway login`" + ` sets. Requests of other users of the computer, for another host name, or
from the page of another origin are refused, whatever they carry.

**What is sent.** Bodies are JSON, and a field that is not known is refused. Times are RFC 3339. Amounts of memory
are bytes; where one is asked for, a text such as ` + "`\"512m\"`" + ` will do. Lengths of time
are texts such as ` + "`\"30m\"`" + ` unless a name ends in Seconds or Ms. Lists are never null. A field in *italics*
may be left out.

**Failures.** An answer with a status of 400 or more is a [Problem](#problem): a [code](errors.md), one sentence,
a hint, and what is wrong with which field.

| status | when |
|---|---|
| 400 | the request cannot be understood: not JSON, an unknown field, a field of the wrong type, a bad parameter |
| 401, 403 | there is no valid token or cookie; the caller may not do this |
| 404, 405 | there is no such thing, or no such address; the address has other methods |
| 409 | the state of things forbids it, for example a name that is taken |
| 413, 422 | the body is too long; a value is not allowed |
| 500, 502 | a mistake of Slipway's own; an app ended before it answered |
| 503, 504 | an agent or the engine is not reached, so nothing is known of the outcome; it took too long |
| 507 | a disk is full |

**What takes long** is an [Operation](#operation): the request is answered at once with 202, the operation goes on
when nobody watches, asks a person what
it needs to know, and can be cancelled.

**Twice is once.** A launch with a ` + "`key`" + ` and an upload with a ` + "`key`" +
	` may be sent again when the answer was lost.

**Streams** are WebSockets on the same address, with the same token. ` + "`GET /api/v1/events`" +
	` sends a snapshot and then every change; with the
` + "`epoch`" + ` and ` + "`seq`" + ` of the last event seen it goes on behind that.
`

// fewest is how many requests have a heading of their own.
const fewest = 3

// writeAPI lists the requests, and the shapes of their bodies.
func writeAPI(b *bytes.Buffer) error {
	b.WriteString(aboutAPI)
	groups := map[string][]route.Description{}
	for _, one := range route.All() {
		name, _, _ := strings.Cut(strings.TrimPrefix(one.Path(), route.Root+"/"), "/")
		groups[name] = append(groups[name], one)
	}
	var others []route.Description
	for _, one := range route.All() {
		name, _, _ := strings.Cut(strings.TrimPrefix(one.Path(), route.Root+"/"), "/")
		switch group := groups[name]; {
		case len(group) < fewest:
			others = append(others, one)
		case group[0].Name == one.Name:
			writeRoutes(b, "/"+name, group)
		}
	}
	writeRoutes(b, "Everything else", others)
	return writeShapes(b)
}

func writeRoutes(b *bytes.Buffer, title string, routes []route.Description) {
	fmt.Fprintf(b, "\n## %s\n\n| request | does | body | answer |\n|---|---|---|---|\n", title)
	for _, one := range routes {
		does := cell(one.Summary)
		for _, param := range one.Query {
			does += fmt.Sprintf("<br>`%s`: %s", param.Name, cell(param.Text))
		}
		fmt.Fprintf(b, "| `%s %s` | %s | %s | %s |\n", one.Method(), strings.TrimPrefix(one.Path(), route.Root), does,
			bodyLink(one.Request), answer(one))
	}
}

func answer(one route.Description) string {
	switch {
	case one.Stream == route.WebSocket && one.Response != nil:
		return "a WebSocket of " + bodyLink(one.Response)
	case one.Stream == route.WebSocket:
		return "a WebSocket"
	case one.Stream != "":
		return fmt.Sprint(one.Success(), ", ", one.Stream)
	case one.Response == nil:
		return fmt.Sprint(one.Success())
	}
	return fmt.Sprint(one.Success(), ", ", bodyLink(one.Response))
}

// bodyLink names the shape of a body.
func bodyLink(body any) string {
	if body == nil {
		return ""
	}
	t := reflect.TypeOf(body)
	if t.Kind() == reflect.Slice {
		return "list of " + shapeLink(api.TypeName(t.Elem()))
	}
	return shapeLink(api.TypeName(t))
}

func shapeLink(name string) string { return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name)) }

// shape is a schema of the document, as far as it uses schemas.
type shape struct {
	Ref         string `json:"$ref"`
	Description string
	Type        any // a name, or a list of names
	Format      string
	Enum        []string
	Items       *shape
	Values      *shape `json:"additionalProperties"`
	Properties  map[string]shape
	Required    []string
}

func writeShapes(b *bytes.Buffer) error {
	var document struct {
		Components struct{ Schemas map[string]shape }
	}
	if err := json.Unmarshal([]byte(api.OpenAPI), &document); err != nil {
		return err
	}
	b.WriteString("\n## Shapes\n")
	shapes := document.Components.Schemas
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		one := shapes[name]
		fmt.Fprintf(b, "\n### %s\n\n%s\n", name, cell(one.Description))
		if len(one.Enum) > 0 {
			fmt.Fprintf(b, "\nOne of `%s`.\n", strings.Join(one.Enum, "`, `"))
		}
		if len(one.Properties) == 0 {
			continue
		}
		b.WriteString("\n| field | is | about |\n|---|---|---|\n")
		for _, field := range slices.Sorted(maps.Keys(one.Properties)) {
			of, mark := one.Properties[field], "*"
			if slices.Contains(one.Required, field) {
				mark = ""
			}
			fmt.Fprintf(b, "| %s`%s`%s | %s | %s |\n", mark, field, mark, of.kind(), cell(of.Description))
		}
	}
	return nil
}

// kind is what a value of the shape is.
func (s shape) kind() string {
	var names []string
	switch t := s.Type.(type) {
	case string:
		names = []string{t}
	case []any:
		for _, name := range t {
			names = append(names, fmt.Sprint(name))
		}
	}
	switch {
	case s.Ref != "":
		return shapeLink(s.Ref[strings.LastIndexByte(s.Ref, '/')+1:])
	case s.Items != nil:
		return "list of " + s.Items.kind()
	case s.Values != nil:
		return "a " + s.Values.kind() + " by name"
	case s.Format == "date-time":
		names[0] = "time"
	case s.Format == "int64" && len(names) > 1 && names[1] == "string":
		return "bytes"
	}
	return strings.Join(names, " or ")
}
