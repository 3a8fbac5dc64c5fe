package router

import (
	"bytes"
	"crypto/sha256"
)

// outline is what the router reads in the JSON body of a request.
type outline struct {
	how      extent
	model    string
	hasModel bool
	stream   bool
	options  span // value of stream_options; zero: absent
	usage    bool // stream_options.include_usage is true
	messages span // zero: absent, or longer than what was read
}

// read finds the outline of a body, of which only the beginning may be there. Of a key that occurs twice, the last
// value counts, as in the servers.
func read(body []byte) outline {
	var o outline
	end, how := members(body, func(key string, value span) {
		raw := value.of(body)
		switch key {
		case "model":
			o.model, o.hasModel = decodeString(raw)
		case "stream":
			o.stream = string(raw) == "true"
		case "stream_options":
			o.options, o.usage = value, asksUsage(raw)
		case "messages":
			o.messages = value
		}
	})
	if o.how = how; how == whole && len(bytes.Trim(body[end:], " \t\r\n")) > 0 {
		o.how = broken
	}
	return o
}

func asksUsage(options []byte) (asks bool) {
	members(options, func(key string, value span) {
		if key == "include_usage" {
			asks = string(value.of(options)) == "true"
		}
	})
	return asks
}

// withUsage returns a whole body that asks for the usage in a stream, and is otherwise the same.
func (o outline) withUsage(body []byte) []byte {
	const ask = `"include_usage":true`
	if o.options.to == 0 {
		at := bytes.IndexByte(body, '{') + 1
		return splice(body, span{at, at}, `"stream_options":{`+ask+`},`) // a stream has at least one member
	}
	options := o.options.of(body)
	if options[0] != '{' {
		return splice(body, o.options, "{"+ask+"}")
	}
	var present span
	count := 0
	members(options, func(key string, value span) {
		if count++; key == "include_usage" {
			present = value
		}
	})
	inside := o.options.from + 1
	switch {
	case present.to > 0:
		return splice(body, span{o.options.from + present.from, o.options.from + present.to}, "true")
	case count > 0:
		return splice(body, span{inside, inside}, ask+",")
	}
	return splice(body, span{inside, inside}, ask)
}

// splice returns a copy of body with other text in place of a span.
func splice(body []byte, place span, text string) []byte {
	out := make([]byte, 0, len(body)+len(text))
	out = append(append(out, body[:place.from]...), text...)
	return append(out, body[place.to:]...)
}

// conversation identifies the conversation by its messages up to the first of the user, which all its requests have.
func (o outline) conversation(body []byte, token string) conversation {
	sum := sha256.New()
	sum.Write([]byte(token + "\x00"))
	for message := range elements(o.messages.of(body)) {
		sum.Write(message)
		sum.Write([]byte{0})
		role := ""
		members(message, func(key string, value span) {
			if key == "role" {
				role, _ = decodeString(value.of(message))
			}
		})
		if role == "user" {
			return conversation(sum.Sum(nil))
		}
	}
	return conversation{}
}
