package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"slipway/backend/api/route"
)

// object is a JSON object. Its members are sorted.
type object map[string]any

var pathParam = regexp.MustCompile(`\{([a-z]+)\}`)

func openAPI(src *source) ([]byte, error) {
	paths := object{}
	for _, one := range src.Routes {
		item, ok := paths[one.Path()].(object)
		if !ok {
			item = object{}
			paths[one.Path()] = item
		}
		item[strings.ToLower(one.Method())] = src.operation(one)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"openapi": "3.1.0",
		"info": object{
			"title":   "Slipway",
			"version": "v1",
			"description": "The loopback API of Slipway's control plane. Times are RFC 3339, amounts of memory are " +
				"bytes, lengths of time are texts such as \"30m\" unless a name ends in Seconds or Ms. Lists are " +
				"never null. Every answer with a status of 400 or more is a Problem.",
		},
		"security": []object{{"token": []string{}}, {"cookie": []string{}}},
		"paths":    paths,
		"components": object{
			"schemas": src.schemas(),
			"securitySchemes": object{
				"token": object{"type": "http", "scheme": "bearer",
					"description": "The content of the file token in Slipway's folder."},
				"cookie": object{"type": "apiKey", "in": "cookie", "name": "slipway",
					"description": "Set by the one-time login address. Requests that change something also need an " +
						"Origin of this server."},
			},
		},
	})
	return out.Bytes(), err
}

func (s *source) operation(one route.Description) object {
	operation := object{"operationId": one.Name, "summary": one.Summary}
	if parameters := routeParameters(one); len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	if one.Request != nil {
		schema := s.bodySchema(one.Request)
		if one.Stream == route.WebSocket {
			operation["x-first-message"] = schema
		} else {
			operation["requestBody"] = object{"required": true, "content": jsonContent(schema)}
		}
	}
	status := one.Status
	if one.Stream == route.WebSocket {
		status = http.StatusSwitchingProtocols
	}
	operation["responses"] = object{
		strconv.Itoa(status): s.success(one),
		"default": object{"description": "What went wrong and what to do.",
			"content": jsonContent(reference("Problem"))},
	}
	return operation
}

func (s *source) success(one route.Description) object {
	switch one.Stream {
	case route.WebSocket:
		answer := object{"description": "A WebSocket."}
		if one.Response != nil {
			answer["x-messages"] = s.bodySchema(one.Response)
		}
		return answer
	case route.Text:
		return object{"description": "Text as it comes.",
			"content": object{"text/plain": object{"schema": object{"type": "string"}}}}
	case route.Bytes:
		return object{"description": "The content.", "content": object{"application/octet-stream": object{}}}
	}
	if one.Response == nil {
		return object{"description": "Done."}
	}
	return object{"description": "The answer.", "content": jsonContent(s.bodySchema(one.Response))}
}

func routeParameters(one route.Description) []object {
	var out []object
	for _, match := range pathParam.FindAllStringSubmatch(one.Path(), -1) {
		out = append(out, object{"name": match[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, param := range one.Query {
		out = append(out, object{"name": param.Name, "in": "query", "description": sentence(param.Text),
			"schema": object{"type": "string"}})
	}
	return out
}

// bodySchema is the schema of a body, given by its zero value.
func (s *source) bodySchema(body any) object {
	typ := reflect.TypeOf(body)
	if typ.Kind() == reflect.Slice {
		return object{"type": "array", "items": reference(s.names[typ.Elem()])}
	}
	return reference(s.names[typ])
}

func (s *source) schemas() object {
	out := object{}
	for _, e := range s.Enums {
		out[e.Name] = object{"type": "string", "description": e.Doc, "enum": e.Members}
	}
	for _, typ := range s.Structs {
		properties, required := object{}, []string{}
		for _, f := range typ.Fields {
			properties[f.Name] = fieldSchema(f)
			if !f.Optional {
				required = append(required, f.Name)
			}
		}
		schema := object{"type": "object", "properties": properties}
		if len(required) > 0 {
			schema["required"] = required
		}
		if typ.Doc != "" {
			schema["description"] = sentence(typ.Doc)
		}
		out[typ.Name] = schema
	}
	return out
}

func fieldSchema(f field) object {
	schema := maps.Clone(f.Type.schema)
	if f.Nullable {
		if name, ok := schema["type"].(string); ok {
			schema["type"] = []string{name, "null"}
		} else {
			schema = object{"anyOf": []object{schema, {"type": "null"}}}
		}
	}
	if f.Doc != "" {
		schema["description"] = sentence(f.Doc)
	}
	return schema
}

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func jsonContent(schema object) object {
	return object{"application/json": object{"schema": schema}}
}
