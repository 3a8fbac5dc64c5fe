package settings

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// check returns the value as the field keeps it: a string, an int, a float64, a bool or a []string; or what is wrong
// with it.
func (f Field) check(value any) (any, string) {
	switch f.Kind {
	case Integer, Number:
		return f.checkNumber(value)
	case Switch:
		if on, ok := value.(bool); ok {
			return on, ""
		}
		return nil, "It is true or false."
	case List:
		return checkList(value)
	case Text:
	}
	text, ok := value.(string)
	switch {
	case !ok:
		return nil, "It is a text, in quotes."
	case f.Choices != nil && !slices.Contains(f.Choices, text):
		return nil, fmt.Sprintf("%q is not a choice. It is one of %s.", text, strings.Join(f.Choices, ", "))
	case f.Rule != "" && !regexp.MustCompile(f.Rule).MatchString(text):
		return nil, fmt.Sprintf("%q is not understood. Write it like %s.", text, f.Example)
	}
	return text, ""
}

func (f Field) checkNumber(value any) (any, string) {
	var number float64
	switch v := value.(type) {
	case float64:
		number = v
	case int:
		number = float64(v)
	default:
		return nil, "It is a number."
	}
	if !(number >= f.Least && number <= f.Most) {
		return nil, fmt.Sprintf("%s is not between %s and %s.", plain(number), plain(f.Least), plain(f.Most))
	}
	if f.Kind == Number {
		return number, ""
	}
	if number != math.Trunc(number) {
		return nil, "It is a whole number."
	}
	return int(number), ""
}

func checkList(value any) (any, string) {
	if texts, ok := value.([]string); ok {
		return texts, ""
	}
	items, ok := value.([]any)
	if !ok {
		return nil, "It is a list of texts."
	}
	texts := make([]string, 0, len(items))
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return nil, "It is a list of texts."
		}
		texts = append(texts, text)
	}
	return texts, ""
}

// parse reads the value of a variable.
func (f Field) parse(text string) (any, string) {
	switch f.Kind {
	case Integer, Number:
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Sprintf("%q is not a number.", text)
		}
		return f.check(number)
	case Switch:
		switch text {
		case "1", "true":
			return true, ""
		case "0", "false":
			return false, ""
		}
		return nil, fmt.Sprintf("%q is neither 1 nor 0.", text)
	case List:
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }), ""
	case Text:
	}
	return f.check(text)
}

// Print is the reverse of [Parse]; "" of nil.
func (f Field) Print(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "1"
		}
		return "0"
	case []string:
		return strings.Join(v, ",")
	case float64:
		return plain(v)
	}
	return fmt.Sprint(value)
}

func plain(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }
