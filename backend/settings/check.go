package settings

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// check converts a value to the type of the field (string, int, float64, bool or []string), or returns what is wrong
// with it.
func (f Field) check(value any) (any, string) {
	text, isText := value.(string)
	on, isSwitch := value.(bool)
	switch {
	case f.Kind == Integer || f.Kind == Number:
		return f.checkNumber(value)
	case f.Kind == List:
		return checkList(value)
	case f.Kind == Switch && !isSwitch:
		return nil, "It is true or false."
	case f.Kind == Switch:
		return on, ""
	case !isText:
		return nil, "It is a text, in quotes."
	case f.Choices != nil && !slices.Contains(f.Choices, text):
		return nil, fmt.Sprintf("%q is not a choice. It is one of %s.", text, strings.Join(f.Choices, ", "))
	case f.Rule != "" && !regexp.MustCompile(f.Rule).MatchString(text):
		return nil, fmt.Sprintf("%q is not understood. Write it like %s.", text, f.Example)
	}
	return text, ""
}

func (f Field) checkNumber(value any) (any, string) {
	number, ok := value.(float64)
	if whole, isInt := value.(int); isInt {
		number, ok = float64(whole), true
	}
	switch {
	case !ok:
		return nil, "It is a number."
	case !(number >= f.Least && number <= f.Most):
		return nil, fmt.Sprintf("%s is not between %s and %s.", plain(number), plain(f.Least), plain(f.Most))
	case f.Kind == Number:
		return number, ""
	case number != math.Trunc(number):
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

// parse parses the value of a variable.
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
		return nil, fmt.Sprintf("%q must be 1 or 0.", text)
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
